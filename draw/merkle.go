package draw

import (
	"crypto/sha256"
	"math/bits"
)

// The tree is that of RFC 6962 (Certificate Transparency): leaves are hashed with
// a 0 in front and nodes with a 1, so that no leaf can pass for a node.
const (
	leafPrefix = 0
	nodePrefix = 1
)

// LeafHash is the hash of one leaf of a tree.
func LeafHash(data []byte) Hash {
	b := make([]byte, 0, 160)
	return sha256.Sum256(append(append(b, leafPrefix), data...))
}

func nodeHash(left, right Hash) Hash {
	var b [1 + 2*sha256.Size]byte
	b[0] = nodePrefix
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}

// Frontier computes the root of a tree from its leaves, one after the other, and
// keeps one hash per level. The zero value is a tree without leaves.
type Frontier struct {
	size  uint64
	peaks []Hash // of the complete subtrees, largest first: one per bit of size
}

// Add appends a leaf, by its hash.
func (f *Frontier) Add(leaf Hash) {
	for n := f.size; n&1 == 1; n >>= 1 {
		last := len(f.peaks) - 1
		leaf, f.peaks = nodeHash(f.peaks[last], leaf), f.peaks[:last]
	}
	f.peaks = append(f.peaks, leaf)
	f.size++
}

// Root is the root of the leaves so far.
func (f *Frontier) Root() Hash {
	if f.size == 0 {
		return sha256.Sum256(nil)
	}
	root := f.peaks[len(f.peaks)-1]
	for i := len(f.peaks) - 2; i >= 0; i-- {
		root = nodeHash(f.peaks[i], root)
	}
	return root
}

// Tree keeps all its nodes, 64 bytes a leaf, to prove of leaves that they are in
// it. Its leaves may be the roots of trees that have the same power of two of
// leaves each: a path in one of these, and then one in this, is a path in the
// tree of all their leaves.
type Tree struct {
	levels [][]Hash // levels[k] are the complete subtrees of 2^k leaves
}

// NewTree makes a tree of the hashes of leaves.
func NewTree(leaves []Hash) *Tree {
	t := &Tree{levels: [][]Hash{leaves}}
	for level := leaves; len(level) > 1; {
		above := make([]Hash, len(level)/2)
		for i := range above {
			above[i] = nodeHash(level[2*i], level[2*i+1])
		}
		t.levels = append(t.levels, above)
		level = above
	}
	return t
}

// Root is the root of the tree.
func (t *Tree) Root() Hash {
	if len(t.levels[0]) == 0 {
		return sha256.Sum256(nil)
	}
	return t.root(0, len(t.levels[0]))
}

// root is that of the leaves from lo up to hi, which are the left or right part
// of some node. Only the last part of a tree is not complete.
func (t *Tree) root(lo, hi int) Hash {
	n := hi - lo
	if k := bits.TrailingZeros(uint(n)); n == 1<<k {
		return t.levels[k][lo>>k]
	}
	middle := lo + split(n)
	return nodeHash(t.root(lo, middle), t.root(middle, hi))
}

// split is how many of n leaves are in the left part: the greatest power of two
// below n.
func split(n int) int { return 1 << (bits.Len(uint(n-1)) - 1) }

// Path proves that a leaf is in the tree: the hashes beside the way from the
// leaf up to the root. The leaf must exist.
func (t *Tree) Path(leaf int) []Hash {
	path := []Hash{}
	lo, hi := 0, len(t.levels[0])
	for hi-lo > 1 {
		middle := lo + split(hi-lo)
		if leaf < middle {
			path = append(path, t.root(middle, hi))
			hi = middle
		} else {
			path = append(path, t.root(lo, middle))
			lo = middle
		}
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// RootOf is the root that a leaf at index has in a tree of that size, if path is
// right; false where no tree has such a path. (RFC 9162, section 2.1.3.2.)
func RootOf(leaf Hash, index, size uint64, path []Hash) (Hash, bool) {
	if index >= size {
		return Hash{}, false
	}
	root, last := leaf, size-1
	for _, beside := range path {
		if last == 0 {
			return Hash{}, false
		}
		if index&1 == 1 || index == last {
			root = nodeHash(beside, root)
			for index&1 == 0 && index > 0 { // no sibling on these levels
				index, last = index>>1, last>>1
			}
		} else {
			root = nodeHash(root, beside)
		}
		index, last = index>>1, last>>1
	}
	return root, last == 0
}
