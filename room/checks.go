package room

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/linekeeper/linekeeper/queue"
)

// Bounds of what has a length. All languages at their longest stay well below
// what one Redis hash field and one answer can carry.
const (
	maxWeight    = 1000
	maxBoost     = 86_400
	maxURLs      = 20
	maxURLLength = 500
	maxLanguages = 20
	maxMessage   = 500 // runes
)

var (
	laneForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)
	// hostForm leaves out everything that browsers and net/url read differently.
	hostForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)
	languageForm = regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$`)
)

func readLanes(v any, _ []Lane) ([]Lane, Problems) {
	list, ok := v.([]any)
	if !ok {
		return nil, problem("must be a list of lanes, got %s", got(v))
	}
	var wrong Problems
	lanes := make([]Lane, len(list))
	for i, v := range list {
		lane, problems := readLane(v)
		lanes[i] = lane
		wrong = append(wrong, problems.under(fmt.Sprintf("[%d]", i))...)
	}
	return lanes, wrong
}

func readLane(v any) (Lane, Problems) {
	doc, ok := v.(map[string]any)
	if !ok {
		return Lane{}, problem("must be an object with name and weight, got %s", got(v))
	}
	wrong := unknown(doc, "property of a lane", "name", "weight", "boostSeconds")
	for i := range wrong {
		wrong[i].Field = "." + wrong[i].Field
	}
	name, ok := doc["name"].(string)
	if !ok {
		wrong = append(wrong, problem("must be a text, got %s", got(doc["name"])).under(".name")...)
	}
	weight, ok := wholeNumber(doc["weight"])
	if !ok {
		wrong = append(wrong, notWhole(1, maxWeight, doc["weight"]).under(".weight")...)
	}
	boost, ok := wholeNumber(doc["boostSeconds"])
	if doc["boostSeconds"] != nil && !ok {
		wrong = append(wrong, notWhole(0, maxBoost, doc["boostSeconds"]).under(".boostSeconds")...)
	}
	return Lane{Name: name, Weight: weight, BoostSeconds: boost}, wrong
}

func checkLanes(lanes []Lane) Problems {
	if n := len(lanes); n < 1 || n > queue.MaxLanes {
		return problem("must have 1 to %d lanes, got %d", queue.MaxLanes, n)
	}
	var wrong Problems
	seen := map[string]bool{} // a credential names its lane, so a name must mean one
	for i, lane := range lanes {
		at := fmt.Sprintf("[%d]", i)
		switch {
		case !laneForm.MatchString(lane.Name):
			wrong = append(wrong, problem("must match %s, got %s", laneForm, got(lane.Name)).under(at+".name")...)
		case seen[lane.Name]:
			wrong = append(wrong, problem("must be another than the lanes before it have, got %s", got(lane.Name)).under(at+".name")...)
		}
		if lane.Weight < 1 || lane.Weight > maxWeight {
			wrong = append(wrong, notWhole(1, maxWeight, lane.Weight).under(at+".weight")...)
		}
		if lane.BoostSeconds < 0 || lane.BoostSeconds > maxBoost {
			wrong = append(wrong, notWhole(0, maxBoost, lane.BoostSeconds).under(at+".boostSeconds")...)
		}
		seen[lane.Name] = true
	}
	return wrong
}

func readURLs(v any, _ []string) ([]string, Problems) {
	list, ok := v.([]any)
	if !ok {
		return nil, problem("must be a list of https addresses, got %s", got(v))
	}
	var wrong Problems
	urls := make([]string, len(list))
	for i, v := range list {
		if urls[i], ok = v.(string); !ok {
			wrong = append(wrong, notURL(v).under(fmt.Sprintf("[%d]", i))...)
		}
	}
	return urls, wrong
}

func checkURLs(urls []string) Problems {
	if n := len(urls); n > maxURLs {
		return problem("must have at most %d addresses, got %d", maxURLs, n)
	}
	var wrong Problems
	for i, s := range urls {
		if !safeURL(s) {
			wrong = append(wrong, notURL(s).under(fmt.Sprintf("[%d]", i))...)
		}
	}
	return wrong
}

func notURL(v any) Problems {
	return problem("must be an https address of at most %d bytes with a plain host and no user, query or fragment, got %s", maxURLLength, got(v))
}

// safeURL accepts what every reader of the address reads in the same way: the
// host that net/url sees must be the host that a browser goes to.
func safeURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxURLLength && u.Scheme == "https" && hostForm.MatchString(u.Host) &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && u.String() == s &&
		!numbered(u.Hostname()) && plainPath(u.Path)
}

// numbered tells a host that browsers read as an IPv4 address, in many spellings:
// its last part is a number.
func numbered(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == "" || last[0] >= '0' && last[0] <= '9'
}

// plainPath takes a path, decoded, that nobody shortens or reads as a host.
func plainPath(path string) bool {
	return !strings.ContainsFunc(path, unicode.IsControl) && !strings.Contains(path, `\`) && !strings.Contains(path, "//") &&
		!strings.Contains(path+"/", "/./") && !strings.Contains(path+"/", "/../")
}

// readMessage merges language by language; null takes a language away.
func readMessage(v any, cur map[string]string) (map[string]string, Problems) {
	doc, ok := v.(map[string]any)
	if !ok {
		return nil, problem("must be an object of language and text, got %s", got(v))
	}
	next := map[string]string{}
	maps.Copy(next, cur)
	var wrong Problems
	for _, language := range slices.Sorted(maps.Keys(doc)) {
		switch text := doc[language].(type) {
		case nil:
			delete(next, language)
		case string:
			next[language] = text
		default:
			wrong = append(wrong, notMessage(got(text)).under("."+clip(language))...)
		}
	}
	return next, wrong
}

func checkMessage(message map[string]string) Problems {
	if n := len(message); n > maxLanguages {
		return problem("must have at most %d languages, got %d", maxLanguages, n)
	}
	var wrong Problems
	for _, language := range slices.Sorted(maps.Keys(message)) {
		if !languageForm.MatchString(language) {
			wrong = append(wrong, problem("must be named by a language tag such as en or pt-BR, got %s", got(language)).under("."+clip(language))...)
			continue
		}
		wrong = append(wrong, checkMessageText(message[language]).under("."+language)...)
	}
	return wrong
}

func checkMessageText(text string) Problems {
	// U+FFFD is what broken UTF-8 reads as; DecodeObject refuses it too.
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' || r == utf8.RuneError }
	switch n := utf8.RuneCountInString(text); {
	case n < 1 || n > maxMessage:
		return notMessage(fmt.Sprint(n))
	case strings.ContainsFunc(text, control):
		return notMessage("some")
	}
	return nil
}

func notMessage(what string) Problems {
	return problem("must be a text of 1 to %d characters without control or broken ones, got %s", maxMessage, what)
}

// together has the rules about several settings at once. Each problem is told
// at the field that is usually the one to change.
func (s Settings) together() Problems {
	var wrong Problems
	// A claim may start at the last moment of a token, but a token shorter than
	// one attempt could never be tried twice.
	if s.EntryTokenTTLSeconds < s.ClaimLeaseSeconds {
		wrong = append(wrong, Problem{"entryTokenTtlSeconds", fmt.Sprintf("must be at least claimLeaseSeconds (%d), got %d", s.ClaimLeaseSeconds, s.EntryTokenTTLSeconds)})
	}
	// Lost places come back for forgetAfterSeconds. Nobody is taken for the first
	// settleSeconds of them, and there must be a rest for the late.
	if s.ForgetAfterSeconds <= s.SettleSeconds {
		wrong = append(wrong, Problem{"forgetAfterSeconds", fmt.Sprintf("must be more than settleSeconds (%d), got %d", s.SettleSeconds, s.ForgetAfterSeconds)})
	}
	wrong = append(wrong, s.lanesTogether()...)
	wrong = append(wrong, s.overbooksNothing()...)
	wrong = append(wrong, s.straightIn()...)
	wrong = append(wrong, s.workBounds()...)
	wrong = append(wrong, s.failsOpen()...)
	wrong = append(wrong, inOrder("admitsAt", "opensAt", s.AdmitsAt, s.OpensAt)...)
	wrong = append(wrong, inOrder("closesAt", "admitsAt", s.ClosesAt, s.AdmitsAt)...)
	if s.AdmitsAt == nil {
		wrong = append(wrong, inOrder("closesAt", "opensAt", s.ClosesAt, s.OpensAt)...)
	}
	return wrong
}

// straightIn refuses to let people through as they enter where they have one order
// each: the turn that this saves is worth more there than half a second.
func (s Settings) straightIn() Problems {
	if s.DirectAdmission && s.OneOrderPerMember {
		return problem("must be false where oneOrderPerMember is true").under("directAdmission")
	}
	return nil
}

// inOrder complains about a time that lies before the one it must follow. Equal
// times are fine: a room that admits at once when it opens.
func inOrder(field, other string, t, after *time.Time) Problems {
	if t == nil || after == nil || !t.Before(*after) {
		return nil
	}
	return problem("must not be before %s (%s), got %s", other, after.Format(time.RFC3339), t.Format(time.RFC3339)).under(field)
}
