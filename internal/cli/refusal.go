package cli

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/linekeeper/linekeeper/api/problem"
)

// Refusal is an answer of the API that says no.
type Refusal struct{ problem.Problem }

// Error is one line: what the API said, what to do, and the fields at fault.
func (r Refusal) Error() string {
	var b strings.Builder
	said := r.Detail
	if len(r.Errors) > 0 {
		said = r.Title
	}
	fmt.Fprintf(&b, "%s (%d %s", strings.TrimSuffix(plain(said), "."), r.Status, plain(r.Code))
	if r.Status >= http.StatusInternalServerError {
		fmt.Fprintf(&b, ", request %s", plain(r.RequestID))
	}
	b.WriteString(")" + advice[r.Code])
	if r.RetryAfterSeconds != nil {
		fmt.Fprintf(&b, "; try again in %d s", *r.RetryAfterSeconds)
	}
	for i, e := range r.Errors {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		b.WriteString(separator + plain(e.Field) + " " + plain(e.Detail))
	}
	return b.String()
}

// advice is what to do, where a shell can do something that the API can't know.
var advice = map[string]string{
	"unauthorized":        "; LINEKEEPER_ADMIN_TOKEN holds no token that it knows",
	"precondition-failed": "; look at it again, and repeat with --if-version of what you saw",
}

// refused reads a problem. What is none comes from something else than
// Linekeeper, a proxy say, and is not repeated.
func (c *Client) refused(resp *http.Response, body []byte) error {
	var r Refusal
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != problem.ContentType || json.Unmarshal(body, &r.Problem) != nil || r.Code == "" {
		return fmt.Errorf("%s answers %s, which is no answer of Linekeeper's operators' API; see LINEKEEPER_ADMIN_URL", c.base, resp.Status)
	}
	return r
}

// plain keeps a text of others on its line, and from steering the terminal.
func plain(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return ' '
		}
		return c
	}, s)
}
