package draw

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Placed is a member with the place that the draw gave.
type Placed struct {
	Member string
	Lane   int // index into the draw's lanes
	Score  int64
}

// List is everybody who was in the line when the draw ended, sorted by entrant:
// so the list says nothing of who came when.
type List struct {
	Header
	entries []Entry
	tree    *Tree
	draw    Draw
}

// List makes the list of the members placed, in whatever order they come. It
// refuses what Verify would find wrong.
func (d Draw) List(order Order, lanes []Lane, placed []Placed) (*List, error) {
	header := Plan{d, order, lanes}.ListHeader(int64(len(placed)), Hash{})
	l := &List{draw: d, entries: make([]Entry, len(placed)), Header: header}
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("list entrants of room %s: %w", d.Room, err)
	}
	h := d.hasher()
	for i, p := range placed {
		e := Entry{Entrant: h.entrant(p.Member), Lane: p.Lane, Score: p.Score}
		if err := l.misplaced(h, e); err != nil {
			return nil, fmt.Errorf("list entrants of room %s: %w", d.Room, err)
		}
		l.entries[i] = e
	}
	if err := l.arrange(); err != nil {
		return nil, fmt.Errorf("list entrants of room %s: %w", d.Room, err)
	}
	return l, nil
}

// misplaced says what is wrong with the place of an entry.
func (h Header) misplaced(d *hasher, e Entry) error {
	if e.Lane < 0 || e.Lane >= len(h.Lanes) {
		return fmt.Errorf("entrant %s is in lane %d of %d", e.Entrant, e.Lane, len(h.Lanes))
	}
	if k := d.key(e.Entrant, h.Order, h.Lanes[e.Lane].Weight); !k.Holds(e.Score) {
		return fmt.Errorf("entrant %s has score %d, the seed gives %d to %d", e.Entrant, e.Score, k.First(), k.First()+Slots-1)
	}
	return nil
}

// arrange gives everybody the rank, sorts the entries and makes the tree.
func (l *List) arrange() error {
	slices.SortFunc(l.entries, func(a, b Entry) int { return cmp.Compare(a.Score, b.Score) })
	var ahead [maxLanes]int64
	for i := range l.entries {
		e := &l.entries[i]
		if i > 0 && e.Score == l.entries[i-1].Score {
			return fmt.Errorf("two entrants have score %d", e.Score)
		}
		line := l.line(e.Lane)
		e.Rank = ahead[line]
		ahead[line]++
	}
	slices.SortFunc(l.entries, func(a, b Entry) int { return bytes.Compare(a.Entrant[:], b.Entrant[:]) })
	leaves := make([]Hash, len(l.entries))
	for i, e := range l.entries {
		if i > 0 && e.Entrant == l.entries[i-1].Entrant {
			return errors.New("a member is listed twice")
		}
		leaves[i] = LeafHash(e.Leaf())
	}
	l.tree = NewTree(leaves)
	l.Root = l.seal(l.tree.Root())
	return nil
}

// WriteTo writes the document: a line with the header, and one for each entrant.
func (l *List) WriteTo(w io.Writer) (int64, error) {
	b := bufio.NewWriter(w)
	n, err := l.write(b)
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return n, fmt.Errorf("write entrants of room %s: %w", l.Room, err)
	}
	return n, nil
}

func (l *List) write(w io.Writer) (n int64, err error) {
	line, err := json.Marshal(l.Header)
	for i := 0; err == nil; i++ {
		var m int
		m, err = w.Write(append(line, '\n'))
		n += int64(m)
		if i == len(l.entries) {
			break
		}
		line = l.entries[i].appendJSON(line[:0])
	}
	return n, err
}

// Proof is the proof of one member; false if they are not in the list.
func (l *List) Proof(member string) (Proof, bool) {
	i, found := slices.BinarySearchFunc(l.entries, l.draw.Entrant(member), func(e Entry, h Hash) int {
		return bytes.Compare(e.Entrant[:], h[:])
	})
	if !found {
		return Proof{}, false
	}
	p := Proof{Header: l.Header, Entry: l.entries[i], Index: int64(i), Path: l.tree.Path(i)}
	p.Kind = KindProof
	return p, true
}
