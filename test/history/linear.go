package history

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// deed is something done about one grant, or found out about it: by a client,
// who knows it from an answer, or by a step.
//
//	placed, found, perhaps, void, other   of clients
//	claim, release, lapse, spend, over    of steps
type deed struct {
	what    string
	id      string // of the order, or the claim: an order has the id of its claim
	content string
	index   int    // of steps: they were taken in this order, from 1
	line    string // for people
}

// book is what is true of one grant: a register of one order, and of who holds
// the grant meanwhile.
type book struct {
	order   string // empty: none; "?": one that nobody has named yet
	content string
	void    bool // there is no order and never will be
	holder  string
	claims  string // all that ever held it, each between commas
	steps   int
	spent   bool
}

// I13, and I1, I4 and I5 with it: all calls and steps about one grant can be
// put in one order, each within its own time, in which each answer is right.
func linearizable(j *judge) {
	ops := map[string][]porcupine.Operation{}
	j.clientDeeds(ops)
	// What a loss undid can't be put in one order with what followed it.
	steps := !j.anyGap() && j.journaled()
	if steps {
		j.stepDeeds(ops)
	}
	model := grantModel(steps)
	for _, grant := range slices.Sorted(maps.Keys(ops)) {
		switch porcupine.CheckOperationsTimeout(model, ops[grant], 2*time.Second) {
		case porcupine.Illegal:
			j.illegal(grant, model, ops[grant])
		case porcupine.Unknown:
			j.deviate("not decided in time: grant " + grant)
		}
	}
}

// illegal tells of a grant, and draws it.
func (j *judge) illegal(grant string, model porcupine.Model, ops []porcupine.Operation) {
	var slice []string
	for _, op := range ops {
		slice = append(slice, op.Input.(deed).line)
	}
	if j.Pictures != "" && j.found < most {
		_, info := porcupine.CheckOperationsVerbose(model, ops, 2*time.Second)
		path := filepath.Join(j.Pictures, "grant-"+strings.Map(plain, grant)+".html")
		err := os.MkdirAll(j.Pictures, 0o755)
		if err == nil {
			err = porcupine.VisualizePath(model, info, path)
		}
		if err != nil {
			path = err.Error()
		}
		slice = append(slice, "picture: "+path)
	}
	j.violate(fmt.Sprintf("no order of what was done about grant %s explains all answers", grant), slice...)
}

// plain keeps of a name what every file system takes.
func plain(r rune) rune {
	if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return '_'
}

func (j *judge) clientDeeds(ops map[string][]porcupine.Operation) {
	for i, c := range j.orders {
		if c.Grant == "" || c.Forged {
			continue
		}
		d := deed{what: j.deedOf(c), id: c.OrderID, content: c.Content, line: j.call(c)}
		if d.what == "" {
			continue
		}
		ops[c.Grant] = append(ops[c.Grant], porcupine.Operation{ClientId: i % 64, Input: d, Call: c.begun, Return: c.effect})
	}
}

// deedOf is what a call says of its grant; empty if nothing.
func (j *judge) deedOf(c *call) string {
	ofThis := true
	if o := j.rows[c.OrderID]; o != nil {
		ofThis = o.Grant == c.Grant // the key may have led to the order of another
	}
	switch {
	case c.class == Unknown:
		return "perhaps"
	case c.class == OK && !c.Replayed:
		return "placed"
	case c.class == OK && ofThis:
		return "found"
	case c.class == Fail && c.code == "entry-token-invalid":
		return "void"
	case c.class == Fail && c.code == "entry-token-consumed":
		return "other"
	}
	return ""
}

func (j *judge) stepDeeds(ops map[string][]porcupine.Operation) {
	index := map[string]int{}
	j.eachMove(func(m *moment, v move) {
		add := func(grant, what, id string) {
			index[grant]++
			op := porcupine.Operation{ClientId: 64, Call: m.After, Return: m.Before}
			if op.Return == 0 {
				op.Return = never
			}
			op.Input = deed{what: what, id: id, index: index[grant], line: what + " " + id + ": " + j.step(m, v.member)}
			ops[grant] = append(ops[grant], op)
		}
		was, is := v.before.Grant, v.after.Grant
		gone := was != nil && (is == nil || is.ID != was.ID)
		if was != nil && was.Claim != "" && (gone || is.Claim != was.Claim) && !(gone && m.Script == "consume") {
			what := "lapse"
			if m.Script == "release" {
				what = "release"
			}
			add(was.ID, what, was.Claim)
		}
		if gone {
			what := "over"
			if m.Script == "consume" {
				what = "spend"
			}
			add(was.ID, what, "")
		}
		if is != nil && is.Claim != "" && (was == nil || was.ID != is.ID || was.Claim != is.Claim) {
			add(is.ID, "claim", is.Claim)
		}
	})
}

// grantModel is the specification of one grant. With steps in it, an order must
// have had its claim, and a grant is spent only for an order.
func grantModel(steps bool) porcupine.Model {
	nm := porcupine.NondeterministicModel{
		Init: func() []any { return []any{book{}} },
		Step: func(state, input, _ any) []any {
			b, d := state.(book), input.(deed)
			if d.index == 0 {
				return b.told(d, steps)
			}
			if d.index != b.steps+1 {
				return nil
			}
			b.steps++
			return b.stepped(d)
		},
		Equal:             func(a, b any) bool { return a.(book) == b.(book) },
		DescribeOperation: func(input, _ any) string { return input.(deed).line },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	return nm.ToModel()
}

// told are the books after an answer; none, if it can't be right.
func (b book) told(d deed, steps bool) []any {
	switch d.what {
	case "placed":
		if b.order != "" || b.void || steps && !strings.Contains(b.claims, ","+d.id+",") {
			return nil
		}
		b.order, b.content = d.id, d.content
	case "found":
		if b.order != d.id && b.order != "?" || b.content != d.content {
			return nil
		}
		b.order = d.id
	case "perhaps":
		if b.order == "" && !b.void {
			made := b
			made.order, made.content = "?", d.content
			return []any{b, made}
		}
	case "void":
		if b.order != "" {
			return nil
		}
		b.void = true
	case "other":
		if b.order == "" || b.content == d.content {
			return nil
		}
	}
	return []any{b}
}

// stepped are the books after a step; none, if it should not have been taken.
func (b book) stepped(d deed) []any {
	switch d.what {
	case "claim":
		if b.holder != "" || b.spent {
			return nil
		}
		b.holder, b.claims = d.id, b.claims+","+d.id+","
	case "release", "lapse":
		if b.holder != d.id {
			return nil
		}
		b.holder = ""
	case "spend":
		if b.order == "" {
			return nil
		}
		b.holder, b.spent = "", true
	case "over":
		if b.holder != "" {
			return nil
		}
	}
	return []any{b}
}
