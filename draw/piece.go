package draw

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// PieceLines is how many entrants a piece of a list has; the last may have
// fewer. It is a power of two, so that the root of a piece is a node of the tree,
// and small enough to be read for one proof.
const PieceLines = 1024

// Piece is a part of a list, as it is kept: lines of the document that follow
// each other. Everything else of the document is the header.
type Piece struct {
	First Hash   // the entrant of the first line
	Root  Hash   // of the tree of these lines
	Body  []byte // the lines
}

// Pieces are the whole list in order, after its header.
func (l *List) Pieces() iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		for from := 0; from < len(l.entries); from += PieceLines {
			part := l.entries[from:min(from+PieceLines, len(l.entries))]
			p := Piece{First: part[0].Entrant, Root: l.tree.root(from, from+len(part))}
			for _, e := range part {
				p.Body = append(e.appendJSON(p.Body), '\n')
			}
			if !yield(p) {
				return
			}
		}
	}
}

// WriteHeader writes the first line of the document of the list.
func (h Header) WriteHeader(w io.Writer) error {
	h.Kind = KindEntrants
	line, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("header of the draw of room %s: %w", h.Room, err)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// errPiece is of a piece that is not what the list was made of.
var errPiece = errors.New("a piece of the list is damaged")

// Prove makes the proof of an entrant from what is kept of a list: its header,
// the roots of all pieces in order, and the piece, by number, where the entrant
// must be if they are anywhere: the last whose first entrant is not above. False
// if they are not in the list. A proof that does not lead to the header's root is
// an error and never returned.
func Prove(h Header, roots []Hash, number int, body []byte, entrant Hash) (Proof, bool, error) {
	entries, err := readPiece(body)
	if err != nil || number < 0 || number >= len(roots) {
		return Proof{}, false, fmt.Errorf("prove an entrant of room %s: %w", h.Room, errors.Join(err, errPiece))
	}
	leaves, at := make([]Hash, len(entries)), -1
	for i, e := range entries {
		leaves[i] = LeafHash(e.Leaf())
		if bytes.Equal(e.Entrant[:], entrant[:]) {
			at = i
		}
	}
	if at < 0 {
		return Proof{}, false, nil
	}
	whole := NewTree(roots)
	p := Proof{Header: h, Entry: entries[at], Index: int64(number*PieceLines + at)}
	p.Kind = KindProof
	p.Path = append(NewTree(leaves).Path(at), whole.Path(number)...)
	tree, ok := RootOf(leaves[at], uint64(p.Index), uint64(h.Entrants), p.Path)
	if !ok || tree != whole.Root() || h.seal(tree) != h.Root {
		return Proof{}, false, fmt.Errorf("prove an entrant of room %s: %w", h.Room, errPiece)
	}
	return p, true, nil
}

func readPiece(body []byte) ([]Entry, error) {
	var entries []Entry
	for l := newLines(bytes.NewReader(body)); ; {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		e, err := readEntry(line)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
}

// AppendHashes appends hashes one after the other, as they are kept.
func AppendHashes(b []byte, hashes ...Hash) []byte {
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return b
}

// ReadHashes reads what AppendHashes has written; what is left over is dropped.
func ReadHashes(b []byte) []Hash {
	hashes := make([]Hash, 0, len(b)/sha256.Size)
	for ; len(b) >= sha256.Size; b = b[sha256.Size:] {
		hashes = append(hashes, Hash(b[:sha256.Size]))
	}
	return hashes
}
