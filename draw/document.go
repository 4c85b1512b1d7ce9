package draw

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
)

// Version is that of the documents. A reader refuses every other.
const Version = 1

// What kind of document something is.
const (
	KindEntrants = "linekeeper-draw-entrants" // everybody: a header, and a line for each
	KindProof    = "linekeeper-draw-proof"    // one of them
)

// Order is how a draw puts entrants in order.
type Order string

// The orders.
const (
	Uniform  Order = "uniform"  // every order has the same probability
	Weighted Order = "weighted" // lanes of greater weight are more often in front
)

// Lane is a line inside the room, with its weight in a weighted draw.
type Lane struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
}

// Header says which draw a document is of. Both kinds begin with it.
type Header struct {
	Kind       string `json:"kind"`
	Version    int    `json:"version"`
	Room       string `json:"room"`
	Sale       int64  `json:"sale"`
	Order      Order  `json:"order"`
	Lanes      []Lane `json:"lanes"`
	Commitment Hash   `json:"commitment"`
	Seed       string `json:"seed"`
	Entrants   int64  `json:"entrants"`
	Root       Hash   `json:"root"`
}

// Entry is what the list says of one entrant.
type Entry struct {
	Entrant Hash  `json:"entrant"`
	Lane    int   `json:"lane"` // index into the header's lanes
	Score   int64 `json:"score"`
	Rank    int64 `json:"rank"` // entrants ahead in the line when the draw ended
}

// Leaf is the entry in the tree: its fields as text, with spaces between.
func (e Entry) Leaf() []byte { return e.appendTo(nil, "", " ", " ", " ", "") }

// appendJSON writes the line of the document, the same as encoding/json would.
func (e Entry) appendJSON(b []byte) []byte {
	return e.appendTo(b, `{"entrant":"`, `","lane":`, `,"score":`, `,"rank":`, `}`)
}

func (e Entry) appendTo(b []byte, around ...string) []byte {
	b = hex.AppendEncode(append(b, around[0]...), e.Entrant[:])
	b = strconv.AppendInt(append(b, around[1]...), int64(e.Lane), 10)
	b = strconv.AppendInt(append(b, around[2]...), e.Score, 10)
	b = strconv.AppendInt(append(b, around[3]...), e.Rank, 10)
	return append(b, around[4]...)
}

// Proof shows of one entrant that the root holds them, at that place. It is one
// JSON object.
type Proof struct {
	Header
	Entry
	Index int64  `json:"index"` // of the entrant's line
	Path  []Hash `json:"path"`  // hashes beside the way to the root, from below
}

const (
	maxLanes = 4         // of a room
	maxLine  = 64 * 1024 // far above what a header or a proof needs
)

var (
	roomForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	laneForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)
)

// seal is the root that is published: the hash of the header itself, as the list
// has it, with the root of the tree in its place. So the root holds the number of
// entrants, the lanes and the seed as well.
func (h Header) seal(tree Hash) Hash {
	h.Kind, h.Root = KindEntrants, tree
	line, err := json.Marshal(h)
	if err != nil {
		panic(err) // texts, numbers and hashes have no way to fail
	}
	return sha256.Sum256(line)
}

// check says what keeps the header from being one of a draw.
func (h Header) check() error {
	switch {
	case !roomForm.MatchString(h.Room):
		return fmt.Errorf("%q can't be the name of a room", h.Room)
	case h.Sale < 1:
		return fmt.Errorf("sale %d: the first is 1", h.Sale)
	case h.Order != Uniform && h.Order != Weighted:
		return fmt.Errorf("order %q is neither %q nor %q", h.Order, Uniform, Weighted)
	case len(h.Lanes) < 1 || len(h.Lanes) > maxLanes:
		return fmt.Errorf("%d lanes: a room has 1 to %d", len(h.Lanes), maxLanes)
	case h.Entrants < 0:
		return fmt.Errorf("%d entrants", h.Entrants)
	}
	for i, l := range h.Lanes {
		if slices.ContainsFunc(h.Lanes[:i], func(o Lane) bool { return o.Name == l.Name }) {
			return fmt.Errorf("two lanes are called %q", l.Name)
		}
		if !laneForm.MatchString(l.Name) || l.Weight < 1 || l.Weight > MaxWeight {
			return fmt.Errorf("lane %q with weight %d: a weight is 1 to %d", l.Name, l.Weight, MaxWeight)
		}
	}
	return nil
}

// line is where somebody of a lane stands: each lane is a line of its own, but in
// a weighted draw all lanes are one line.
func (h Header) line(lane int) int {
	if h.Order == Weighted {
		return 0
	}
	return lane
}

// errForm is of a text that is not what this program would have written: what
// has two spellings can say one thing to a person and another to a program.
var errForm = errors.New("not in the one form that such a document has")

// decodeExactly reads v from JSON that is, but for spaces, what v is written as.
func decodeExactly(text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %w", errForm, err)
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var plain bytes.Buffer
	if err := json.Compact(&plain, text); err != nil || !bytes.Equal(plain.Bytes(), again) {
		return errForm
	}
	return nil
}

// readEntry reads a line of the list.
func readEntry(line []byte) (e Entry, err error) {
	var fields [4][]byte
	rest, found := bytes.CutPrefix(line, []byte(`{"entrant":"`))
	for i, behind := range []string{`","lane":`, `,"score":`, `,"rank":`, `}`} {
		var ok bool
		fields[i], rest, ok = bytes.Cut(rest, []byte(behind))
		found = found && ok
	}
	if !found || !e.Entrant.read(fields[0]) {
		return Entry{}, errForm
	}
	var numbers [3]int64
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(string(fields[i+1]), 10, 64); err != nil {
			return Entry{}, errForm
		}
	}
	e.Lane, e.Score, e.Rank = int(numbers[0]), numbers[1], numbers[2]
	// +1, 01 and what stands behind the line are no second spelling.
	if !bytes.Equal(e.appendJSON(make([]byte, 0, 160)), line) {
		return Entry{}, errForm
	}
	return e, nil
}

// lines reads a document. n is the number of the line read last.
type lines struct {
	r *bufio.Reader
	n int64
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, maxLine)} }

// errCut is of a last line that has no end.
var errCut = fmt.Errorf("%w: it is cut off", errForm)

// next returns a line without its end; it is good until the next call. The error
// is io.EOF behind the last line, errForm, errCut beside what is there, or one of
// reading.
func (l *lines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return nil, io.EOF
	}
	l.n++
	switch {
	case errors.Is(err, io.EOF):
		return line, errCut
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, errForm
	case err != nil:
		return nil, err
	}
	return line[:len(line)-1], nil
}
