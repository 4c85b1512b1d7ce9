package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/api/spec"
)

// answer is a response, read to its end, or the lack of one.
type answer struct {
	t      testing.TB
	status int // 0: there was no answer
	header http.Header
	body   []byte
	err    error
}

// ask sends one request. A body is JSON unless header says otherwise.
func (w *world) ask(method, url string, header http.Header, body string) answer {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, content)
	if err != nil {
		return answer{t: w.t, err: err}
	}
	if header != nil {
		req.Header = header.Clone()
	}
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return w.send(req)
}

func (w *world) send(req *http.Request) answer {
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{t: w.t, err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{t: w.t, err: err}
	}
	return answer{t: w.t, status: resp.StatusCode, header: resp.Header, body: b}
}

// is fails the test unless the answer has this status and, if one is given,
// this problem code.
func (a answer) is(status int, code ...string) answer {
	a.t.Helper()
	require.NoError(a.t, a.err)
	require.Equal(a.t, status, a.status, "%s", a.body)
	if len(code) > 0 {
		require.Equal(a.t, code[0], a.code(), "%s", a.body)
	}
	return a
}

// code is the problem code, empty for an answer that is no problem.
func (a answer) code() string {
	if a.header.Get("Content-Type") != problem.ContentType {
		return ""
	}
	return decoded[problem.Problem](a).Code
}

// decoded reads the body. It may be called from any goroutine.
func decoded[T any](a answer) T {
	a.t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Errorf("answer %d (%v) is not %T: %v\n%s", a.status, a.err, v, err, a.body)
	}
	return v
}

func (a answer) position() spec.Position { return decoded[spec.Position](a) }
func (a answer) order() spec.Order       { return decoded[spec.Order](a) }

// anonymous is the answer without what differs each time.
func (a answer) anonymous() string {
	p := decoded[problem.Problem](a)
	return string(bytes.ReplaceAll(a.body, []byte(p.RequestID), nil))
}
