package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is what came of a run, as JSON has it. Times are seconds, latencies
// milliseconds.
type Report struct {
	URL         string         `json:"url"`
	Room        string         `json:"room"`
	BeganAt     time.Time      `json:"beganAt"`
	Seconds     float64        `json:"seconds"`
	Interrupted bool           `json:"interrupted"` // somebody stopped it
	Plan        PlanReport     `json:"plan"`
	RoomStates  []string       `json:"roomStates"` // one after the other
	Came        int64          `json:"came"`
	People      PeopleReport   `json:"people"` // at the end, without intruders; they add up to those planned
	Calls       []CallReport   `json:"calls"`
	SendLag     Latencies      `json:"sendLag"` // how much later than due calls were sent
	Admissions  Admissions     `json:"admissions"`
	Waits       Waits          `json:"waits"`
	Orders      OrdersReport   `json:"orders"`
	Problems    []Problem      `json:"problems"`
	Promises    []Promise      `json:"promises"`
	Violations  []Violation    `json:"violations"`
	Notes       []string       `json:"notes"`
	Series      []SecondReport `json:"series"`
	LeftInRoom  int64          `json:"leftInRoom"` // who could not be taken out of the line at the end
	Passages    []Passage      `json:"passages"`   // some of those let through
}

// PlanReport is the plan, as it was asked for.
type PlanReport struct {
	Shape       string  `json:"shape"`
	Arrivals    int     `json:"arrivals"`
	OverSeconds float64 `json:"overSeconds"`
	TailSeconds float64 `json:"tailSeconds"`
	Order       float64 `json:"order"`
	Twice       float64 `json:"twice"`
	Vanish      float64 `json:"vanish"`
	Leave       float64 `json:"leave"`
	Intruders   int     `json:"intruders"`
	Think       string  `json:"think"`
	Connections int     `json:"connections"`
	Forwarded   bool    `json:"forwarded"`
	Seed        uint64  `json:"seed"`
}

// PeopleReport is where people are when the run ends.
type PeopleReport struct {
	NotEntered int64 `json:"notEntered"` // had not got an answer yet
	InLine     int64 `json:"inLine"`
	WithToken  int64 `json:"withToken"`
	Ordered    int64 `json:"ordered"`
	Left       int64 `json:"left"`
	Vanished   int64 `json:"vanished"`
	Unused     int64 `json:"unused"` // were let through and did not order
	SoldOut    int64 `json:"soldOut"`
	TurnedAway int64 `json:"turnedAway"`
	Lost       int64 `json:"lost"`      // had a place or token, and then not
	Undecided  int64 `json:"undecided"` // never heard what became of their order
}

// CallReport is one kind of call.
type CallReport struct {
	Name    string    `json:"name"`
	Count   int64     `json:"count"`
	Refused int64     `json:"refused"` // 4xx
	Failed  int64     `json:"failed"`  // 5xx, or no answer
	Due     Latencies `json:"due"`     // from when the call was due
	Service Latencies `json:"service"` // from when it was sent
}

// Latencies are milliseconds within which that share of calls was answered.
type Latencies struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Admissions is who was let through.
type Admissions struct {
	Seen          int64   `json:"seen"`          // people who were shown a token
	RatePerSecond float64 `json:"ratePerSecond"` // of the room; 0: not known
	Granted       int64   `json:"granted"`       // by the room meanwhile, to anybody; 0: not known
	FullestWindow float64 `json:"fullestWindow"` // of what the rate allows, at most
}

// Waits is how long people waited, and how long they were told they would. It is
// of those who were let through while the run lasted.
type Waits struct {
	SinceEntered Spread `json:"sinceEntered"` // seconds
	Told         int64  `json:"told"`         // people who were told an estimate
	Estimate     Spread `json:"estimate"`     // the first that each was told
	Real         Spread `json:"real"`         // from then on
	WithinRange  int64  `json:"withinRange"`  // whose wait was within the range they were told, by a poll
}

// Spread is a few quantiles.
type Spread struct {
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	Max float64 `json:"max"`
}

// OrdersReport is what became of orders.
type OrdersReport struct {
	Placed   int64 `json:"placed"`   // different ones
	Replayed int64 `json:"replayed"` // answers that told an order again
}

// Problem is a kind of answer that was no success. Status 0 is no answer.
type Problem struct {
	Call   string `json:"call"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Count  int64  `json:"count"`
}

// Promise is one that was looked at.
type Promise struct {
	Name   string `json:"name"`
	Looks  int64  `json:"looks"`
	Broken int64  `json:"broken"`
	Unseen string `json:"unseen"` // why it could not be judged; empty where it was
}

// SecondReport is one second of the run.
type SecondReport struct {
	Came        int64   `json:"came"`
	Admitted    int64   `json:"admitted"`
	Ordered     int64   `json:"ordered"`
	Waiting     int64   `json:"waiting"`
	Holding     int64   `json:"holding"`
	RoomWaiting int64   `json:"roomWaiting"` // -1: the room did not say
	Granted     int64   `json:"granted"`     // by the room, to anybody; 0 without an admin token
	Calls       int64   `json:"calls"`
	Failed      int64   `json:"failed"`
	P99         float64 `json:"p99"`
}

// Passage is one person let through: the wait that they were told first, in
// seconds, and how long it then was.
type Passage struct {
	Told float64 `json:"told"`
	Real float64 `json:"real"`
}

// Broken is how many times promises were seen broken.
func (r *Report) Broken() (n int64) {
	for _, p := range r.Promises {
		n += p.Broken
	}
	return n
}

// maxPassages are reported.
const maxPassages = 1000

func (r *run) report(w *watch, interrupted bool) *Report {
	p := r.plan
	rep := &Report{
		URL: p.URL, Room: p.Room, BeganAt: r.agenda.began.UTC(), Seconds: r.ended.Seconds(), Interrupted: interrupted,
		Plan: PlanReport{
			Shape: p.Arrivals.Shape, Arrivals: p.Arrivals.People, OverSeconds: p.Arrivals.Over.Seconds(), TailSeconds: p.Tail.Seconds(),
			Order: p.People.Order, Twice: p.People.Twice, Vanish: p.People.Vanish, Leave: p.People.Leave, Intruders: p.intruders(),
			Think: p.People.Think.String(), Connections: p.Connections, Forwarded: p.Forwarded, Seed: p.Seed,
		},
		RoomStates: w.states, People: r.whereabouts(), LeftInRoom: r.tidying.Load(),
	}
	rep.count(r.tally)
	rep.judged(r.judge, p.Operator != nil)
	rep.admissions(w)
	rep.Notes = rep.notes(r.judge, w)
	return rep
}

// whereabouts counts people, without intruders.
func (r *run) whereabouts() (out PeopleReport) {
	to := [numPlaces]*int64{
		coming: &out.NotEntered, waiting: &out.InLine, holding: &out.WithToken, Ordered: &out.Ordered, Left: &out.Left,
		Vanished: &out.Vanished, Unused: &out.Unused, SoldOut: &out.SoldOut, TurnedAway: &out.TurnedAway, Lost: &out.Lost, Undecided: &out.Undecided,
	}
	for _, who := range r.people {
		who.mu.Lock()
		at := who.place
		if _, ordered := who.orders.id(); ordered {
			at = Ordered // some still look whether the line knows of it
		}
		if who.fate != intruder {
			*to[at]++
		}
		who.mu.Unlock()
	}
	return out
}

// count takes over what the tally has.
func (r *Report) count(t *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Came, r.SendLag = t.arrived, latencies(t.lag)
	r.Orders = OrdersReport{t.placed, t.replayed}
	for k := range numKinds {
		r.Calls = append(r.Calls, CallReport{kindNames[k], t.due[k].TotalCount(), t.refused[k], t.failed[k], latencies(t.due[k]), latencies(t.service[k])})
	}
	for k, n := range t.problems {
		r.Problems = append(r.Problems, Problem{kindNames[k.kind], k.status, k.code, n})
	}
	slices.SortFunc(r.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Call, b.Call), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code))
	})
	for _, s := range t.seconds {
		r.Series = append(r.Series, SecondReport{s.Came, s.Admitted, s.Ordered, s.Waiting, s.Holding, s.RoomWaiting, s.Granted, s.Calls, s.Failed, ms(s.P99)})
	}
	r.waited(t.passed)
}

// waited compares what people were told with how long it was.
func (r *Report) waited(passed []passage) {
	var all, estimates, reals []float64
	for _, p := range passed {
		all = append(all, p.sinceEntered.Seconds())
		if p.told.at == 0 {
			continue
		}
		estimates, reals = append(estimates, p.told.wait.Seconds()), append(reals, p.real.Seconds())
		// A range ends when the token is there; one learns of it at the next poll.
		if p.real >= p.told.least && p.real <= p.told.most+longestPoll {
			r.Waits.WithinRange++
		}
	}
	step := max(1, (len(estimates)+maxPassages-1)/maxPassages)
	for i := 0; i < len(estimates); i += step {
		r.Passages = append(r.Passages, Passage{estimates[i], reals[i]})
	}
	r.Admissions.Seen, r.Waits.Told = int64(len(passed)), int64(len(estimates))
	r.Waits.SinceEntered, r.Waits.Estimate, r.Waits.Real = spread(all), spread(estimates), spread(reals)
}

// longestPoll is how late somebody near the front may learn that it is their turn.
const longestPoll = 2 * time.Second

func (r *Report) judged(j *judge, operator bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for p := range numPromises {
		shown := Promise{Name: promiseNames[p], Looks: j.looks[p], Broken: j.broken[p]}
		switch {
		case !operator && (p == withinTheRate || p == rankFalls):
			shown.Unseen = "needs an admin token (LINEKEEPER_ADMIN_TOKEN_FILE)"
		case shown.Looks == 0:
			shown.Unseen = "nothing happened by which to judge it"
		}
		r.Promises = append(r.Promises, shown)
	}
	r.Violations = slices.Clone(j.kept)
}

func (r *Report) admissions(w *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.looks) == 0 {
		return
	}
	first, last := w.first, w.looks[len(w.looks)-1]
	r.Admissions.RatePerSecond, r.Admissions.FullestWindow = last.own.perSecond(), w.fullest
	if first.generation == last.generation {
		r.Admissions.Granted = last.charged - first.charged
	}
}

func latencies(h *hdrhistogram.Histogram) Latencies {
	if h.TotalCount() == 0 {
		return Latencies{}
	}
	at := func(percent float64) float64 { return ms(quantile(h, percent)) }
	return Latencies{at(50), at(90), at(99), at(99.9), ms(time.Duration(h.Max()) * time.Microsecond)}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func spread(of []float64) Spread {
	if len(of) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(of))
	at := func(part float64) float64 { return sorted[int(part*float64(len(sorted)-1))] }
	return Spread{at(0.1), at(0.5), at(0.9), sorted[len(sorted)-1]}
}

// sum adds up the answers of one status and code.
func (r *Report) sum(match func(Problem) bool) (n int64) {
	for _, p := range r.Problems {
		if match(p) {
			n += p.Count
		}
	}
	return n
}
