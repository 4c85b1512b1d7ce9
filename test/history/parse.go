package history

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// text is a JSON string or number, as text. Numbers that may be long are
// written as strings by the journal, others as they come.
type text string

// UnmarshalJSON keeps every digit.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	*t = text(b)
	return nil
}

// entry is a Step as the journal writes it.
type entry struct {
	Script     string                     `json:"script"`
	Mode       string                     `json:"mode"`
	Time       text                       `json:"time"`
	Now        text                       `json:"now"`
	Argv       []text                     `json:"argv"`
	Reply      json.RawMessage            `json:"reply"`
	Error      *string                    `json:"error"`
	Members    map[string]map[string]text `json:"members"`
	State      map[string]text            `json:"state"`
	Sizes      map[string]text            `json:"sizes"`
	Generation text                       `json:"generation"`
	Conf       map[string]text            `json:"conf"`
	Stats      map[string]text            `json:"stats"`
}

// ParseStep reads an entry of the journal.
func ParseStep(b []byte) (Step, error) {
	var e entry
	if err := json.Unmarshal(b, &e); err != nil {
		return Step{}, fmt.Errorf("journal entry %.200s: %w", b, err)
	}
	p := &parser{}
	s := Step{
		Script: e.Script, Mode: e.Mode, Time: p.int(e.Time), Now: p.int(e.Now), Generation: p.int(e.Generation),
		Reply: p.reply(e.Reply), State: p.state(e.State), Stats: make(map[string]int64, len(e.Stats)),
		Members: make(map[string]Member, len(e.Members)),
		Sizes: Sizes{
			Waiting: p.int(e.Sizes["waiting"]), Away: p.int(e.Sizes["away"]), Processing: p.int(e.Sizes["processing"]),
			Ready: p.int(e.Sizes["ready"]), Claimed: p.int(e.Sizes["claimed"]), Done: p.int(e.Sizes["done"]),
		},
	}
	if e.Error != nil {
		s.Err = *e.Error
	}
	for _, a := range e.Argv {
		s.Args = append(s.Args, string(a))
	}
	for name, v := range e.Stats {
		s.Stats[name] = p.int(v)
	}
	for m, fields := range e.Members {
		s.Members[m] = p.member(fields)
	}
	if e.Conf != nil {
		s.Conf = make(map[string]string, len(e.Conf))
		for name, v := range e.Conf {
			s.Conf[name] = string(v)
		}
	}
	if e.Script == "" || s.Now == 0 {
		p.fail("no script or no time")
	}
	if p.err != nil {
		return Step{}, fmt.Errorf("journal entry %.400s: %w", b, p.err)
	}
	return s, nil
}

// parser reads many small texts and remembers the first that is wrong.
type parser struct{ err error }

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// int reads a number; what is missing is 0.
func (p *parser) int(t text) int64 {
	if t == "" {
		return 0
	}
	n, err := strconv.ParseInt(string(t), 10, 64)
	if err != nil {
		p.fail("%q is not a whole number", t)
	}
	return n
}

// reply reads nested lists; numbers become int64. cjson writes an empty list as
// an empty object.
func (p *parser) reply(raw json.RawMessage) []any {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		p.fail("reply: %w", err)
	}
	out := make([]any, len(list))
	for i, v := range list {
		switch {
		case v[0] == '[':
			out[i] = p.reply(v)
		case v[0] == '{':
			out[i] = []any{}
		case v[0] == '"':
			var s string
			if err := json.Unmarshal(v, &s); err != nil {
				p.fail("reply: %w", err)
			}
			out[i] = s
		default:
			out[i] = p.int(text(v))
		}
	}
	return out
}

func (p *parser) state(f map[string]text) State {
	s := State{
		Time: p.int(f["time"]), Last: p.int(f["last"]), Tat: p.int(f["tat"]), Term: p.int(f["term"]), Leader: string(f["leader"]),
		Seq: p.int(f["seq"]), Eff: p.int(f["eff"]), ListenSince: p.int(f["listen_since"]), HeardAt: p.int(f["heard_at"]),
		StepAt: p.int(f["step_at"]), Tidied: p.int(f["tidied"]), Draw: p.int(f["draw"]), ReleasedUsed: p.int(f["released_used"]),
		Stock: StockTold{SKU: string(f["stock_sku"]), Left: p.int(f["stock"]), Consumed: p.int(f["stock_consumed"]), At: p.int(f["stock_at"])},
	}
	for lane := range s.Watermarks {
		s.Watermarks[lane] = p.int(f["watermark"+strconv.Itoa(lane)])
		s.Lasts[lane] = p.int(f["last"+strconv.Itoa(lane)])
	}
	return s
}

func (p *parser) member(f map[string]text) Member {
	m := Member{
		Seen: p.int(f["seen"]), Away: p.int(f["away"]), Processing: p.int(f["processing"]), Ready: p.int(f["ready"]),
		Claimed: p.int(f["claimed"]), Done: p.int(f["done"]),
	}
	if lanes := string(f["lane"]); lanes != "" {
		for lane := range strings.SplitSeq(lanes, ",") {
			m.Lanes = append(m.Lanes, int(p.int(text(lane))))
		}
		// Where several lanes hold a member the first score stands for all: that
		// the lanes are several is wrong enough.
		first, _, _ := strings.Cut(string(f["score"]), ",")
		m.Score = p.int(text(first))
	}
	if v := strings.Fields(string(f["place"])); len(v) > 0 {
		m.AwayPlace = p.place("place", v, 2)
	}
	if v := strings.Fields(string(f["held"])); len(v) > 0 {
		if at := p.place("held", v, 3); at != nil {
			m.Held = &Hold{Place: *at, Step: v[2]}
		}
	}
	if v := strings.Fields(string(f["grant"])); len(v) > 0 {
		m.Grant = p.grant(v)
	}
	if v := strings.Fields(string(f["outcome"])); len(v) > 0 {
		if len(v) != 3 {
			p.fail("outcome %v", v)
			return m
		}
		m.Outcome = &Outcome{Word: v[0], Grant: dash(v[1]), Order: dash(v[2])}
	}
	return m
}

// place reads 'lane score ...' of n words.
func (p *parser) place(what string, v []string, n int) *Place {
	if len(v) != n {
		p.fail("%s %v", what, v)
		return nil
	}
	return &Place{Lane: int(p.int(text(v[0]))), Score: p.int(text(v[1]))}
}

// grant reads 'id lane score issued expiry picked key claim'.
func (p *parser) grant(v []string) *Grant {
	if len(v) != 8 {
		p.fail("grant %v", v)
		return nil
	}
	return &Grant{
		ID: v[0], Place: Place{Lane: int(p.int(text(v[1]))), Score: p.int(text(v[2]))}, Issued: p.int(text(v[3])),
		Expiry: p.int(text(v[4])), Picked: v[5] == "1", Key: dash(v[6]), Claim: dash(v[7]),
	}
}

// dash is how records write what is not there.
func dash(s string) string {
	if s == "-" {
		return ""
	}
	return s
}
