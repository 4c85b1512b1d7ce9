package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// ask sends a request to a comparator without a server.
func (c *comparator) ask(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.router.ServeHTTP(w, r)
	return w
}

func TestPlainAnswersAsTheProductDid(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "answers.json")
	b, err := json.Marshal(map[string]canned{
		"poll":  {Status: 200, Header: http.Header{"Retry-After": {"3"}, "X-Request-Id": {"of-the-first"}}, Body: `{"rank":1}`},
		"enter": {Status: 201, Header: http.Header{"Set-Cookie": {"a=b"}}, Body: `{"rank":2}`},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, b, 0o600))
	c, err := plain(file)
	require.NoError(t, err)

	w := c.ask("GET", "/v1/rooms/r/entries/me", "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, `{"rank":1}`, w.Body.String())
	require.Equal(t, "3", w.Header().Get("Retry-After"))
	require.Equal(t, []string{"no-store", "nosniff"}, []string{w.Header().Get("Cache-Control"), w.Header().Get("X-Content-Type-Options")},
		"the product's middleware is around it")
	require.Len(t, w.Header().Values("X-Request-Id"), 1)
	require.NotEqual(t, "of-the-first", w.Header().Get("X-Request-Id"), "each request has an id of its own, as in the product")

	w = c.ask("POST", "/v1/rooms/r/entries", "")
	require.Equal(t, 201, w.Code)
	require.Equal(t, []string{"a=b"}, w.Header().Values("Set-Cookie"))

	require.NoError(t, os.WriteFile(file, []byte(`{}`), 0o600))
	_, err = plain(file)
	require.ErrorContains(t, err, "none")
}

func TestNaiveStandsBehindTheSameRouter(t *testing.T) {
	t.Parallel()
	c, err := naiveServer("redis://" + harness.Redis(t).Options().Addr)
	require.NoError(t, err)
	t.Cleanup(c.close)
	const room = "/v1/rooms/naive-behind-the-router/entries"
	for _, who := range []string{"ann", "bob", "ann"} {
		require.Equal(t, 201, c.ask("POST", room, "", memberHeader, who).Code)
	}
	w := c.ask("GET", room+"/me", "", memberHeader, "bob")
	require.Equal(t, 200, w.Code)
	require.EqualValues(t, 1, number(w.Body.Bytes(), rankField))
	require.EqualValues(t, 2, number(w.Body.Bytes(), []byte(`"totalWaiting":`)))
	require.NotEmpty(t, w.Header().Get("X-Request-Id"))
}

func TestBareTakesTheOrderAndTheStock(t *testing.T) {
	t.Parallel()
	db := harness.Database(t)
	_, err := db.Exec(t.Context(), "INSERT INTO products (sku, stock, price_cents, currency) VALUES ('p1', 5, 250, 'EUR')")
	require.NoError(t, err)
	c, err := bareServer(t.Context(), harness.DSN(t))
	require.NoError(t, err)
	t.Cleanup(c.close)

	w := c.ask("POST", "/v1/orders", `{"items":[{"sku":"p1","quantity":2}]}`, "Content-Type", "application/json", memberHeader, "ann")
	require.Equal(t, 201, w.Code, w.Body)
	require.EqualValues(t, 500, number(w.Body.Bytes(), []byte(`"totalCents":`)))
	var stock, orders, events int
	err = db.QueryRow(t.Context(), `SELECT (SELECT stock FROM products), (SELECT count(*) FROM orders), (SELECT count(*) FROM outbox)`).Scan(&stock, &orders, &events)
	require.NoError(t, err)
	require.Equal(t, [3]int{3, 1, 0}, [3]int{stock, orders, events}, "the order and the stock, and no event")

	w = c.ask("POST", "/v1/orders", `{"items":[{"sku":"p1","quantity":9}]}`, "Content-Type", "application/json", memberHeader, "ann")
	require.Equal(t, 500, w.Code, "there are not so many: nothing of it stays")
	require.NoError(t, db.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&orders))
	require.Equal(t, 1, orders)
}
