package draw

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Expect is what somebody who verifies knows from elsewhere than the document.
// Zero values are not compared.
type Expect struct {
	Commitment Hash   // as the room published it when it opened
	Root       Hash   // as the room, or another member's proof, has it
	Member     string // whose place is asked for
}

// Level is what came of a check.
type Level string

// The levels. Only Fail says that something is wrong.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "FAIL"
)

// Check is one thing that was looked at.
type Check struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Found string `json:"found"`
}

// Report is what Verify has found.
type Report struct {
	Valid    bool    `json:"valid"`
	Kind     string  `json:"kind"`
	Room     string  `json:"room"`
	Sale     int64   `json:"sale"`
	Entrants int64   `json:"entrants"`
	Root     Hash    `json:"root"`
	Member   *Entry  `json:"member"` // where the member asked for stands
	Checks   []Check `json:"checks"`

	draw   Draw
	header Header
}

// Verify examines a document of either kind: the list of all entrants, or a
// proof of one. Whatever is wrong with it is in the report; the error is of
// reading alone.
func Verify(r io.Reader, want Expect) (Report, error) {
	var report Report
	l := newLines(r)
	text, kind, err := l.begin()
	report.Kind = kind.Kind
	switch {
	case errors.Is(err, errForm):
		report.add("document", Fail, "line 1: %v", err)
	case err != nil:
		return Report{}, err
	case kind.Kind != KindEntrants && kind.Kind != KindProof:
		report.add("document", Fail, "%q is no kind of document of a draw", kind.Kind)
	case kind.Version != Version:
		report.add("document", Fail, "version %d is not known here, only version %d", kind.Version, Version)
	case kind.Kind == KindEntrants:
		err = report.list(l, text, want)
	default:
		report.proof(text, want)
	}
	if err != nil && !errors.Is(err, errForm) {
		return Report{}, err
	}
	report.Valid = !slices.ContainsFunc(report.Checks, func(c Check) bool { return c.Level == Fail })
	return report, nil
}

// kind is what every document says first.
type kind struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
}

// begin reads the first line of a list, or all of a document that is no list and
// may go over several lines.
func (l *lines) begin() (text []byte, k kind, err error) {
	line, err := l.next()
	text = bytes.Clone(line)
	switch {
	case err == nil && json.Unmarshal(text, &k) == nil && k.Kind != KindProof:
		return text, k, nil
	case errors.Is(err, io.EOF):
		return nil, kind{}, fmt.Errorf("%w: it is empty", errForm)
	case err != nil && !errors.Is(err, errCut):
		return nil, kind{}, err
	}
	rest, err := io.ReadAll(io.LimitReader(l.r, maxLine))
	text = append(append(text, '\n'), rest...)
	switch {
	case err != nil:
		return nil, kind{}, err
	case len(text) > maxLine || json.Unmarshal(text, &k) != nil || k.Kind == KindEntrants:
		return nil, kind{}, errForm
	}
	return text, k, nil
}

func (r *Report) add(check string, level Level, format string, args ...any) {
	r.Checks = append(r.Checks, Check{check, level, fmt.Sprintf(format, args...)})
}

// begin takes over the header, and says whether there is a seed to go on with.
func (r *Report) begin(h Header, want Expect) bool {
	r.Room, r.Sale, r.Entrants, r.Root, r.header = h.Room, h.Sale, h.Entrants, h.Root, h
	if err := h.check(); err != nil {
		r.add("document", Fail, "line 1: %v", err)
		return false
	}
	seed, err := ParseSeed(h.Seed)
	switch {
	case err != nil:
		r.add("commitment", Fail, "%v", err)
		return false
	case seed.Commitment() != h.Commitment:
		r.add("commitment", Fail, "SHA-256 of the seed is %s, the document says %s: another seed was used", seed.Commitment(), h.Commitment)
	case want.Commitment == h.Commitment:
		r.add("commitment", OK, "the seed is the one that the room was bound to when it opened")
	case want.Commitment != Hash{}:
		r.add("commitment", Fail, "the room was bound to %s, this is the seed of %s", want.Commitment, h.Commitment)
	default:
		r.add("commitment", Warn, "the seed is that of %s: is this what the room published when it opened?", h.Commitment)
	}
	r.draw = Draw{h.Room, h.Sale, seed}
	return true
}

// rooted compares the root of a tree that was computed.
func (r *Report) rooted(tree Hash, want Expect) {
	switch root := r.header.seal(tree); {
	case root != r.Root:
		r.add("root", Fail, "computed %s, the document says %s", root, r.Root)
	case want.Root != Hash{} && want.Root != root:
		r.add("root", Fail, "the root is %s, you have %s: this is another list", root, want.Root)
	default:
		r.add("root", OK, "%s", root)
	}
}

// found says where the member stands.
func (r *Report) found(member string, e *Entry) {
	switch r.Member = e; {
	case member == "":
	case e == nil:
		r.add("member", Fail, "%s would be entrant %s, who is not here", member, r.draw.Entrant(member))
	default:
		r.add("member", OK, "%s is entrant %s, of lane %s, with %d ahead", member, e.Entrant, r.header.Lanes[e.Lane].Name, e.Rank)
	}
}

// proof examines a proof of one entrant.
func (r *Report) proof(text []byte, want Expect) {
	var p Proof
	if err := decodeExactly(text, &p); err != nil {
		r.add("document", Fail, "%v", err)
		return
	}
	if !r.begin(p.Header, want) {
		return
	}
	if err := p.misplaced(r.draw.hasher(), p.Entry); err != nil {
		r.add("place", Fail, "%v", err)
		return
	}
	r.add("place", OK, "score %d is one that the seed gives to entrant %s", p.Score, p.Entrant)
	tree, ok := RootOf(LeafHash(p.Leaf()), uint64(p.Index), uint64(p.Entrants), p.Path)
	if !ok {
		r.add("root", Fail, "a path of %d hashes leads from no line %d of %d to a root", len(p.Path), p.Index, p.Entrants)
		return
	}
	r.rooted(tree, want)
	if want.Member == "" || r.draw.Entrant(want.Member) == p.Entrant {
		r.found(want.Member, &p.Entry)
	} else {
		r.found(want.Member, nil)
	}
}

// list examines the list of all entrants.
func (r *Report) list(l *lines, first []byte, want Expect) error {
	var h Header
	if err := decodeExactly(first, &h); err != nil {
		r.add("document", Fail, "line 1: %v", err)
		return nil
	}
	if !r.begin(h, want) {
		return nil
	}
	v := visit{header: h, draw: r.draw.hasher(), wanted: r.draw.Entrant(want.Member)}
	if err := v.walk(l); err != nil {
		return err
	}
	v.count()
	if !v.broken {
		v.rank()
	}
	if n := len(v.faults) + v.more; n > 0 {
		for _, f := range v.faults {
			r.add("entrants", Fail, "%s", f)
		}
		if v.more > 0 {
			r.add("entrants", Fail, "and %d faults more", v.more)
		}
	} else {
		r.add("entrants", OK, "%d, each once, each at the place that the seed gives, each with the right rank", v.n())
	}
	if v.tied > 0 {
		r.add("ties", OK, "%d entrants share their key with the one ahead; the slot decided between the two", v.tied)
	}
	r.rooted(v.frontier.Root(), want)
	r.found(want.Member, v.found)
	return nil
}

// visit goes through a list once, and keeps of every entrant no more than it
// takes to compute the ranks.
type visit struct {
	header   Header
	draw     *hasher
	wanted   Hash
	found    *Entry
	frontier Frontier
	last     Hash
	spots    []spot
	broken   bool // a line could not be read: what follows is not known
	tied     int
	faults   []string
	more     int // faults beyond those that are told
}

type spot struct {
	score, rank, line int64
	lane              int
}

func (v *visit) n() int { return len(v.spots) }

// maxFaults are told one by one.
const maxFaults = 5

func (v *visit) fault(format string, args ...any) {
	if len(v.faults) == maxFaults {
		v.more++
		return
	}
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// walk reads the entrants, up to a line that is none.
func (v *visit) walk(l *lines) error {
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var e Entry
		if err == nil {
			e, err = readEntry(line)
		}
		if errors.Is(err, errForm) {
			v.broken = true
			v.fault("line %d: %v", l.n, err)
			return nil
		}
		if err != nil {
			return err
		}
		v.take(l.n, e)
	}
}

func (v *visit) take(line int64, e Entry) {
	switch order := bytes.Compare(v.last[:], e.Entrant[:]); {
	case v.n() == 0 || order < 0:
	case order == 0:
		v.fault("line %d: entrant %s is counted twice", line, e.Entrant)
	default:
		v.fault("line %d: entrant %s is not in the order of the list", line, e.Entrant)
	}
	if err := v.header.misplaced(v.draw, e); err != nil {
		v.fault("line %d: %v", line, err)
	}
	if e.Entrant == v.wanted && e.Lane >= 0 && e.Lane < len(v.header.Lanes) {
		v.found = &e
	}
	v.frontier.Add(LeafHash(e.Leaf()))
	v.spots = append(v.spots, spot{e.Score, e.Rank, line, e.Lane})
	v.last = e.Entrant
}

func (v *visit) count() {
	if int64(v.n()) != v.header.Entrants {
		v.fault("%d were read, line 1 says %d", v.n(), v.header.Entrants)
	}
}

// rank computes everybody's rank anew.
func (v *visit) rank() {
	slices.SortFunc(v.spots, func(a, b spot) int { return cmp.Compare(a.score, b.score) })
	ahead := map[int]int64{}
	for i, s := range v.spots {
		if i > 0 && v.spots[i-1].score == s.score {
			v.fault("lines %d and %d have one score", v.spots[i-1].line, s.line)
		} else if i > 0 && v.spots[i-1].score>>slotBits == s.score>>slotBits {
			v.tied++
		}
		in := v.header.line(s.lane)
		if s.rank != ahead[in] {
			v.fault("line %d: rank %d, by the scores it is %d", s.line, s.rank, ahead[in])
		}
		ahead[in]++
	}
}
