package draw

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The leaves and roots that implementations of Certificate Transparency are
// tested with.
var (
	ctLeaves = []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	ctRoots  = []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
)

func TestRootsAreThoseOfCertificateTransparency(t *testing.T) {
	t.Parallel()
	var f Frontier
	var leaves []Hash
	for n, want := range ctRoots {
		require.Equal(t, want, f.Root().String(), "%d leaves, one by one", n)
		require.Equal(t, want, NewTree(leaves).Root().String(), "%d leaves at once", n)
		if n < len(ctLeaves) {
			data, err := hex.DecodeString(ctLeaves[n])
			require.NoError(t, err)
			leaves = append(leaves, LeafHash(data))
			f.Add(leaves[n])
		}
	}
}

func hashes(n int) []Hash {
	all := make([]Hash, n)
	for i := range all {
		all[i] = LeafHash(fmt.Appendf(nil, "leaf %d", i))
	}
	return all
}

func TestEveryLeafHasAPathToTheRootAndToNoOther(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 70; n++ {
		leaves := hashes(n)
		tree := NewTree(leaves)
		var f Frontier
		for i, leaf := range leaves {
			f.Add(leaf)
			path := tree.Path(i)
			got, ok := RootOf(leaf, uint64(i), uint64(n), path)
			require.True(t, ok)
			require.Equal(t, tree.Root(), got, "leaf %d of %d", i, n)
			for j := range n {
				other, ok := RootOf(leaf, uint64(j), uint64(n), path)
				require.Equal(t, i == j, ok && other == tree.Root(), "leaf %d passes for leaf %d of %d", i, j, n)
			}
			_, ok = RootOf(leaf, uint64(i), uint64(n), append(path, leaf))
			require.False(t, ok, "a path too long")
			if len(path) > 0 {
				_, ok = RootOf(leaf, uint64(i), uint64(n), path[1:])
				require.False(t, ok, "a path too short")
			}
		}
		require.Equal(t, tree.Root(), f.Root(), "%d leaves", n)
		_, ok := RootOf(leaves[0], uint64(n), uint64(n), nil)
		require.False(t, ok, "a leaf behind the last")
	}
}

func TestANodeIsNoLeaf(t *testing.T) {
	t.Parallel()
	leaves := hashes(2)
	node := nodeHash(leaves[0], leaves[1])
	require.NotEqual(t, node, LeafHash(append(leaves[0][:], leaves[1][:]...)))
	require.Equal(t, node, NewTree(leaves).Root())
}

// So a list can be kept in pieces: a path needs one piece and the roots of all.
func TestATreeOfSubtreesIsTheTreeOfTheirLeaves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(1, 300).Draw(t, "leaves"), 1<<rapid.IntRange(0, 6).Draw(t, "log of a piece")
		leaves := hashes(n)
		var pieces []*Tree
		var roots []Hash
		for at := 0; at < n; at += size {
			pieces = append(pieces, NewTree(leaves[at:min(at+size, n)]))
			roots = append(roots, pieces[len(pieces)-1].Root())
		}
		whole, above := NewTree(leaves), NewTree(roots)
		require.Equal(t, whole.Root(), above.Root())
		i := rapid.IntRange(0, n-1).Draw(t, "leaf")
		require.Equal(t, whole.Path(i), append(pieces[i/size].Path(i%size), above.Path(i/size)...))
	})
}
