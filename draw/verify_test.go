package draw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestAListVerifiesAndSaysWhereEverybodyStands(t *testing.T) {
	t.Parallel()
	for _, order := range []Order{Uniform, Weighted} {
		d := of(1)
		l := listed(t, d, order, twoLanes, 501)
		text := document(t, l)
		want := Expect{Commitment: d.Seed.Commitment(), Root: l.Root}
		scores := map[string]int64{}
		for _, p := range entered(d, order, twoLanes, 501) {
			scores[p.Member] = p.Score
		}
		ranks := map[[2]int64]bool{} // a place in a line is somebody's alone
		for member, score := range scores {
			want.Member = member
			r := verified(t, text, want)
			require.True(t, r.Valid, "%v", r.Checks)
			require.EqualValues(t, 501, r.Entrants)
			require.Equal(t, d.Entrant(member), r.Member.Entrant)
			require.Equal(t, score, r.Member.Score)
			line := int64(l.line(r.Member.Lane))
			require.False(t, ranks[[2]int64{line, r.Member.Rank}])
			ranks[[2]int64{line, r.Member.Rank}] = true
		}
		require.Len(t, ranks, 501)
		require.Equal(t, order == Weighted, ranks[[2]int64{0, 500}], "in a weighted draw all lanes are one line")
	}
}

func TestAProofVerifiesWithoutTheList(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 7, 64, 100} {
		d := of(n)
		l := listed(t, d, Weighted, twoLanes, n)
		for i := range n {
			member := fmt.Sprintf("member-%d", i+1)
			text := proofOf(t, l, member)
			want := Expect{d.Seed.Commitment(), l.Root, member}
			r := verified(t, text, want)
			require.True(t, r.Valid, "%v", r.Checks)
			require.Equal(t, verified(t, document(t, l), want).Member, r.Member, "list and proof say the same")
			want.Member = "mallory"
			require.Contains(t, wrong(verified(t, text, want))[0], "mallory would be entrant")
		}
	}
	_, ok := listed(t, of(1), Uniform, oneLane, 3).Proof("mallory")
	require.False(t, ok)
}

func TestAnEmptyDrawVerifies(t *testing.T) {
	t.Parallel()
	l := listed(t, of(1), Uniform, oneLane, 0)
	require.True(t, verified(t, document(t, l), Expect{Commitment: of(1).Seed.Commitment()}).Valid)
	require.False(t, verified(t, document(t, l), Expect{Member: "ann"}).Valid)
}

// Whatever single letter of a document is changed, it is caught: not by the root
// that is known from elsewhere, but with the commitment alone.
func TestEveryChangedByteIsCaught(t *testing.T) {
	t.Parallel()
	d := of(1)
	for _, order := range []Order{Uniform, Weighted} {
		l := listed(t, d, order, twoLanes, 5)
		for kind, text := range map[string][]byte{KindEntrants: document(t, l), KindProof: bytes.TrimSpace(proofOf(t, l, "member-1"))} {
			want := Expect{Commitment: d.Seed.Commitment(), Member: "member-1"}
			require.True(t, verified(t, text, want).Valid)
			for i, was := range text {
				for _, now := range []byte{was ^ 1, was ^ 2, was ^ 32, '0', '9', ' ', '"', '\n'} {
					changed := bytes.Clone(text)
					changed[i] = now
					same := now == was || kind == KindProof && (now == ' ' || now == '\n') && bytes.Equal(compacted(changed), text)
					require.Equal(t, same, verified(t, changed, want).Valid, "%s: byte %d of %s is %q", kind, i, text, now)
				}
				require.False(t, verified(t, append(bytes.Clone(text[:i]), text[i+1:]...), want).Valid, "%s without byte %d", kind, i)
			}
			require.False(t, verified(t, append(bytes.Clone(text), '{', '}'), want).Valid)
		}
	}
}

func compacted(text []byte) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, text) // what is no JSON is not equal
	return b.Bytes()
}

// forged is a list that its operator has changed and then made consistent again,
// as far as it can be: numbers, order, ranks and root.
func forged(t *testing.T, l *List, change func(*List)) []byte {
	t.Helper()
	f := *l
	f.entries = append([]Entry(nil), l.entries...)
	f.Lanes = append([]Lane(nil), l.Lanes...)
	change(&f)
	f.Entrants = int64(len(f.entries))
	if f.arrange() != nil { // it stops at what the verifier is to find
		slices.SortFunc(f.entries, func(a, b Entry) int { return bytes.Compare(a.Entrant[:], b.Entrant[:]) })
	}
	return document(t, &f)
}

func TestAForgedListIsCaught(t *testing.T) {
	t.Parallel()
	d := of(1)
	honest := listed(t, d, Uniform, twoLanes, 200)
	want := Expect{Commitment: d.Seed.Commitment()}
	require.True(t, verified(t, forged(t, honest, func(*List) {}), want).Valid)
	for name, tc := range map[string]struct {
		change func(*List)
		says   string
	}{
		"two places exchanged": {func(l *List) {
			l.entries[3].Score, l.entries[9].Score = l.entries[9].Score, l.entries[3].Score
		}, "the seed gives"},
		"moved to the front":  {func(l *List) { l.entries[3].Score = First }, "the seed gives"},
		"a slot that is none": {func(l *List) { l.entries[3].Score += Slots }, "the seed gives"},
		"somebody added":      {func(l *List) { l.entries = append(l.entries, Entry{Entrant: LeafHash(nil), Score: First + 5}) }, "the seed gives"},
		"counted twice":       {func(l *List) { e := l.entries[3]; e.Score ^= 1; l.entries = append(l.entries, e) }, "counted twice"},
		"two at one place":    {func(l *List) { l.entries[4].Score = l.entries[3].Score }, "have one score"},
		"a lane that is not":  {func(l *List) { l.entries[3].Lane = 3 }, "is in lane 3 of 2"},
		"another seed":        {func(l *List) { l.Seed = seeded(2).Reveal() }, "another seed was used"},
		"another seed, committed": {func(l *List) {
			*l = *listed(t, of(2), Uniform, twoLanes, 200)
		}, "the room was bound to"},
		"another order":   {func(l *List) { l.Order = Weighted }, "the seed gives"},
		"another sale":    {func(l *List) { l.Sale++ }, "the seed gives"},
		"another room":    {func(l *List) { l.Room = "ticket" }, "the seed gives"},
		"a lane too many": {func(l *List) { l.Lanes = append(l.Lanes, Lane{"vip", 1}) }, `two lanes are called "vip"`},
		"no weight":       {func(l *List) { l.Lanes[0].Weight = 0 }, "a weight is 1 to 1000"},
		"no sale":         {func(l *List) { l.Sale = 0 }, "the first is 1"},
		"no order":        {func(l *List) { l.Order = "fair" }, "neither"},
		"no lanes":        {func(l *List) { l.Lanes = nil }, "a room has 1 to 4"},
		"no name":         {func(l *List) { l.Room = "A" }, "can't be the name"},
		"no seed":         {func(l *List) { l.Seed = "REDACTED" }, "64 lower-case"},
		"a later version": {func(l *List) { l.Version = 2 }, "version 2 is not known"},
		"another kind":    {func(l *List) { l.Kind = "linekeeper-draw-result" }, "no kind of document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := verified(t, forged(t, honest, tc.change), want)
			require.False(t, r.Valid)
			require.Contains(t, strings.Join(wrong(r), "\n"), tc.says)
			require.LessOrEqual(t, len(r.Checks), 12, "a report that can be read")
		})
	}
}

// resealed is a list that was changed when all else was done, with the root of
// what it then says.
func resealed(t *testing.T, l *List, change func(*List)) []byte {
	t.Helper()
	f := *l
	f.entries = append([]Entry(nil), l.entries...)
	change(&f)
	var tree Frontier
	for _, e := range f.entries {
		tree.Add(LeafHash(e.Leaf()))
	}
	f.Root = f.seal(tree.Root())
	return document(t, &f)
}

func TestARootDoesNotMakeAListRight(t *testing.T) {
	t.Parallel()
	l := listed(t, of(1), Uniform, twoLanes, 50)
	for says, change := range map[string]func(*List){
		"is not in the order of the list": func(l *List) { l.entries[3], l.entries[4] = l.entries[4], l.entries[3] },
		"by the scores it is":             func(l *List) { l.entries[3].Rank++ },
		"50 were read, line 1 says 51":    func(l *List) { l.Entrants++ },
	} {
		r := verified(t, resealed(t, l, change), Expect{})
		require.Contains(t, strings.Join(wrong(r), "\n"), says)
		require.Contains(t, fmt.Sprint(r.Checks), "{root ok ")
	}
}

func TestOfALineThatCannotBeReadNothingIsConcluded(t *testing.T) {
	t.Parallel()
	text := document(t, listed(t, of(1), Uniform, oneLane, 50))
	r := verified(t, text[:len(text)-10], Expect{})
	require.Equal(t, []string{
		"entrants: line 51: not in the one form that such a document has: it is cut off",
		"entrants: 49 were read, line 1 says 50",
	}, wrong(r)[:2], "and nothing of ranks")
	require.Len(t, wrong(r), 3)
}

func TestNothingMayStandBehindAProof(t *testing.T) {
	t.Parallel()
	text := proofOf(t, listed(t, of(1), Uniform, oneLane, 50), "member-1")
	require.True(t, verified(t, text, Expect{}).Valid)
	for _, behind := range []string{"{}", strings.Repeat(" ", maxLine) + "{}", strings.Repeat("\n", maxLine)} {
		require.False(t, verified(t, append(bytes.Clone(text), behind...), Expect{}).Valid)
	}
}

// Nobody but the one who was dropped can see it, and whoever knows the root of
// before.
func TestADroppedEntrantSeesIt(t *testing.T) {
	t.Parallel()
	d := of(1)
	honest := listed(t, d, Uniform, twoLanes, 200)
	text := forged(t, honest, func(l *List) {
		for i, e := range l.entries {
			if e.Entrant == d.Entrant("member-7") {
				l.entries = append(l.entries[:i], l.entries[i+1:]...)
				return
			}
		}
	})
	require.True(t, verified(t, text, Expect{Commitment: d.Seed.Commitment(), Member: "member-8"}).Valid)
	require.Contains(t, wrong(verified(t, text, Expect{Member: "member-7"}))[0], "member: member-7 would be entrant")
	require.Contains(t, wrong(verified(t, text, Expect{Root: honest.Root}))[0], "this is another list")
}

func TestWhatVerifiesOnlyByTheDocumentsOwnWordIsAWarning(t *testing.T) {
	t.Parallel()
	r := verified(t, document(t, listed(t, of(1), Uniform, oneLane, 3)), Expect{})
	require.True(t, r.Valid)
	require.Equal(t, Warn, r.Checks[0].Level)
	require.Contains(t, r.Checks[0].Found, "is this what the room published")
}

func TestOfManyFaultsTheFirstAreTold(t *testing.T) {
	t.Parallel()
	text := forged(t, listed(t, of(1), Uniform, oneLane, 200), func(l *List) {
		for i := range l.entries {
			l.entries[i].Score = First + int64(i)
		}
	})
	r := verified(t, text, Expect{})
	require.Len(t, wrong(r), maxFaults+1)
	require.Regexp(t, `and 19\d faults more`, wrong(r)[maxFaults])
}

func TestTiesAreToldApartBySlotAndTold(t *testing.T) {
	t.Parallel()
	var v visit
	v.spots = []spot{{score: First + 3, line: 2, rank: 1}, {score: First, line: 3}, {score: First + 64, line: 4, rank: 2}}
	v.rank()
	require.Empty(t, v.faults)
	require.Equal(t, 1, v.tied)
}

func TestAListIsRefusedThatWouldNotVerify(t *testing.T) {
	t.Parallel()
	d := of(1)
	good := entered(d, Uniform, twoLanes, 5)
	with := func(change func([]Placed) []Placed) []Placed { return change(append([]Placed(nil), good...)) }
	for says, placed := range map[string][]Placed{
		"the seed gives":  with(func(p []Placed) []Placed { p[1].Score = 1e15; return p }),
		"in lane 2 of 2":  with(func(p []Placed) []Placed { p[1].Lane = 2; return p }),
		"in lane -1 of 2": with(func(p []Placed) []Placed { p[1].Lane = -1; return p }),
		"listed twice":    with(func(p []Placed) []Placed { q := p[1]; q.Score ^= 1; return append(p, q) }),
		"have score":      with(func(p []Placed) []Placed { return append(p, p[1]) }),
	} {
		_, err := d.List(Uniform, twoLanes, placed)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "room tickets")
	}
	_, err := d.List("fair", twoLanes, good)
	require.Error(t, err)
}

func TestFailuresOfReadingAndWritingAreNoVerdict(t *testing.T) {
	t.Parallel()
	l := listed(t, of(1), Uniform, oneLane, 3000)
	text := document(t, l)
	broken := errors.New("disk on fire")
	for _, n := range []int{0, 10, 1000, len(text) - 1} {
		_, err := Verify(iotest.DataErrReader(&failing{text[:n], broken}), Expect{})
		require.ErrorIs(t, err, broken)
	}
	_, err := l.WriteTo(&full{room: 100_000, err: broken})
	require.ErrorIs(t, err, broken)
}

// failing reads data, and then fails.
type failing struct {
	data []byte
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	if len(f.data) == 0 {
		return 0, f.err
	}
	n := copy(p, f.data)
	f.data = f.data[n:]
	return n, nil
}

// full takes so much, and then fails.
type full struct {
	room int
	err  error
}

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, f.err
	}
	return len(p), nil
}

// Whatever a reader is given, it does not break; and what passes is what would
// have been written.
func FuzzVerify(f *testing.F) {
	d := of(1)
	l := listed(f, d, Weighted, twoLanes, 3)
	list, proof := document(f, l), proofOf(f, l, "member-1")
	for _, text := range [][]byte{list, proof, list[:len(list)-1], nil, []byte("{}"), []byte("{\n}"), []byte(`{"kind":"` + KindProof + `","version":1}`),
		bytes.ReplaceAll(list, []byte("\n"), []byte("\r\n")), bytes.Repeat([]byte("x"), maxLine+1)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want := Expect{Commitment: d.Seed.Commitment(), Root: l.Root}
		r := verified(t, text, want)
		if r.Valid && r.Kind == KindEntrants {
			require.Equal(t, list, text, "another list with this root")
		}
		if r.Valid && r.Kind == KindProof {
			var p Proof
			require.NoError(t, json.Unmarshal(text, &p))
			require.Contains(t, l.entries, p.Entry, "another entrant under this root")
		}
	})
}

func FuzzEntry(f *testing.F) {
	for _, line := range strings.Split(string(document(f, listed(f, of(1), Uniform, oneLane, 2))), "\n") {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := readEntry(line)
		if err != nil {
			require.Equal(t, Entry{}, e)
			return
		}
		require.Equal(t, line, e.appendJSON(nil))
		text, err := json.Marshal(e)
		require.NoError(t, err)
		require.Equal(t, string(text), string(line), "the line is JSON as encoding/json has it")
	})
}
