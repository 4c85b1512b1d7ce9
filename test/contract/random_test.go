package contract_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/contract"
)

// made writes requests of a maker out, and counts those to each operation.
func made(t *testing.T, seed uint64, n int) (text []string, routes map[string]int) {
	t.Helper()
	m := contract.Load(t).NewMaker(seed, func(contract.Route) bool { return true })
	m.Known["room"] = []string{"sale"}
	routes = map[string]int{}
	for range n {
		req := m.Request("http://linekeeper")
		var body []byte
		if req.Body != nil {
			var err error
			body, err = io.ReadAll(req.Body)
			require.NoError(t, err)
		}
		all := req.Method + " " + req.URL.String() + " " + string(body)
		for _, name := range []string{"X-Queue-Ticket", "X-Entry-Token", "Idempotency-Key", "Content-Type", "If-Match"} {
			all += " " + req.Header.Get(name)
		}
		text = append(text, all)
		if req.URL.Path == "/v1/rooms/sale/entries" && req.Method == http.MethodPost || req.URL.Path == "/v1/orders" {
			routes[req.Method+" "+req.URL.Path]++
		}
	}
	return text, routes
}

func TestOneSeedMakesTheSameRequests(t *testing.T) {
	t.Parallel()
	first, routes := made(t, 7, 1000)
	again, _ := made(t, 7, 1000)
	require.Equal(t, first, again)
	other, _ := made(t, 8, 1000)
	require.NotEqual(t, first, other)
	require.Greater(t, routes["POST /v1/rooms/sale/entries"], 5, "most are good ones")
	require.Greater(t, routes["POST /v1/orders"], 5)
}
