package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/room"
)

func TestRemoteIsToldWhatItLacksBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, token, want string }{
		{"http://h:1", "", "LINEKEEPER_ADMIN_TOKEN: is required"},
		{"http://h:1", "two words", "LINEKEEPER_ADMIN_TOKEN: has characters"},
		{"http://u:pw@h:1", "t", "LINEKEEPER_ADMIN_URL: is not a plain http"},
		{"ftp://h", "t", "LINEKEEPER_ADMIN_URL: is not a plain http"},
		{"http://", "t", "LINEKEEPER_ADMIN_URL: is not a plain http"},
		{"http://h/?a=b", "t", "LINEKEEPER_ADMIN_URL: is not a plain http"},
		{"http://h/#a", "t", "LINEKEEPER_ADMIN_URL: is not a plain http"},
	} {
		err := cli.Remote{AdminURL: config.URL(c.url), AdminToken: config.Secret(c.token)}.Check()
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "pw")
	}
	require.NoError(t, cli.Remote{AdminURL: "https://h/", AdminToken: "t"}.Check())
}

func TestRoomsAreListedAndShown(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale", func(s *room.Settings) { s.Paused, s.BatchSize = true, 7 })
	v, err := f.ListRooms(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `(?m)^sale +1 +1 +7 per 1s +paused +-`, shown(t, v))
	require.JSONEq(t, string(v.Body), printed(t, v, cli.JSON))
	require.Contains(t, string(v.Body), `"batchSize":7`)

	v, err = f.GetRoom(t.Context(), "sale")
	require.NoError(t, err)
	table := shown(t, v)
	require.Regexp(t, `(?m)^batchSize +7 +\(default 50\)$`, table)
	for _, name := range cli.SettingNames() {
		require.Regexp(t, `(?m)^`+name+` `, table)
	}
	require.NotRegexp(t, `intervalMs +1000 +\(default`, table)
}

func TestRoomIsCreatedChangedTurnedFlushedAndDeleted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	patch, err := cli.ParseAssignments([]string{"batchSize=9", "message.en=Soon"})
	require.NoError(t, err)
	v, err := f.CreateRoom(t.Context(), "sale", patch)
	require.NoError(t, err)
	require.Equal(t, "room sale is at version 1, sale 1: 9 per 1s\n", shown(t, v))
	require.Equal(t, map[string]string{"en": "Soon"}, f.get("sale").Settings.Message)

	patch, err = cli.ParseAssignments([]string{"batchSize=11", "message.en="})
	require.NoError(t, err)
	_, err = f.PatchRoom(t.Context(), "sale", 0, patch)
	require.NoError(t, err)
	require.Equal(t, 11, f.get("sale").Settings.BatchSize)
	require.Empty(t, f.get("sale").Settings.Message)

	for _, c := range []struct {
		verb             string
		paused, draining bool
	}{{"pause", true, false}, {"drain", true, true}, {"resume", false, false}} {
		_, err = f.Turn(t.Context(), "sale", c.verb, 0)
		require.NoError(t, err)
		s := f.get("sale").Settings
		require.Equal(t, []bool{c.paused, c.draining}, []bool{s.Paused, s.Draining}, c.verb)
	}

	_, err = f.Flush(t.Context(), "sale", "another")
	require.Equal(t, "confirmation-required", refusal(t, err).Code)
	v, err = f.Flush(t.Context(), "sale", "sale")
	require.NoError(t, err)
	require.Contains(t, shown(t, v), "sale 2")
	require.Equal(t, "confirmation-required", refusal(t, f.DeleteRoom(t.Context(), "sale", "no")).Code)
	require.NoError(t, f.DeleteRoom(t.Context(), "sale", "sale"))
	_, err = f.GetRoom(t.Context(), "sale")
	require.Equal(t, "room-not-found", refusal(t, err).Code)
}

func TestSettingIsChangedOnlyFromTheVersionSeen(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale", nil)
	_, err := f.PatchRoom(t.Context(), "sale", 1, []byte(`{"batchSize":1}`))
	require.NoError(t, err)
	_, err = f.PatchRoom(t.Context(), "sale", 1, []byte(`{"batchSize":2}`))
	require.ErrorContains(t, err, "The version in force is 2 (412 precondition-failed); look at it again")
	_, err = f.Turn(t.Context(), "sale", "pause", 1)
	require.Equal(t, "precondition-failed", refusal(t, err).Code)
	require.Equal(t, 1, f.get("sale").Settings.BatchSize)
}

func TestRefusalNamesEveryFieldAndWhatToDo(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale", nil)
	_, err := f.PatchRoom(t.Context(), "sale", 0, []byte(`{"batchSize":0,"foo":1}`))
	require.EqualError(t, err, "The settings are not valid (422 invalid-settings): "+
		"batchSize must be a whole number from 1 to 10000, got 0; foo is not a setting")
	_, err = f.as("wrong").ListRooms(t.Context())
	require.ErrorContains(t, err, "(401 unauthorized); LINEKEEPER_ADMIN_TOKEN holds no token that it knows")
	f.pool.Close()
	_, err = f.ListRooms(t.Context())
	require.Regexp(t, `\(500 internal, request \S+\)`, err.Error(), "ours to look up in the log")
}

func TestNothingButLinekeeperIsBelieved(t *testing.T) {
	t.Parallel()
	stolen := make(chan string, 1)
	thief := strange(t, func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") })
	_, err := thief.ListRooms(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Bearer secret", <-stolen)

	for name, h := range map[string]http.HandlerFunc{
		"a proxy's page": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>\x1b[31m")
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/admin/v1/rooms" {
				stolen <- r.Header.Get("Authorization")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
		"another's problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"title":"no"}`)
		},
	} {
		_, err := strange(t, h).ListRooms(t.Context())
		require.ErrorContains(t, err, "no answer of Linekeeper's operators' API", name)
		require.NotContains(t, err.Error(), "\x1b", name)
	}
	require.Empty(t, stolen, "a redirect was followed")

	_, err = client("http://127.0.0.1:1", "t").ListRooms(t.Context())
	require.ErrorContains(t, err, "http://127.0.0.1:1 does not answer: ")
	require.ErrorContains(t, err, "LINEKEEPER_ADMIN_URL")
}

func TestTextsOfOthersStayOnTheirLine(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.deadEvent("wrong\ttype\n\x1b[31mred")
	v, err := f.Outbox(t.Context(), cli.Page{})
	require.NoError(t, err)
	table := shown(t, v)
	require.Equal(t, 2, strings.Count(table, "\n"), table)
	require.Contains(t, table, "wrong type  [31mred")
	require.Contains(t, table, fmt.Sprint(id))
}

func TestOutboxIsPagedAndRequeued(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first, second := f.deadEvent("a"), f.deadEvent("b")
	v, err := f.Outbox(t.Context(), cli.Page{Limit: 1})
	require.NoError(t, err)
	require.Contains(t, shown(t, v), fmt.Sprintf("there may be more: --after %d", first))
	v, err = f.Outbox(t.Context(), cli.Page{Limit: 1, From: first})
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`(?m)^%d +dead +consume +sale `, second), shown(t, v))

	require.NoError(t, f.Requeue(t.Context(), first))
	require.Equal(t, "conflict", refusal(t, f.Requeue(t.Context(), first)).Code)
	v, err = f.Outbox(t.Context(), cli.Page{Filter: "pending"})
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`(?m)^%d +pending `, first), shown(t, v))
	require.NotContains(t, shown(t, v), "there may be more")
}

func TestAuditTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale", nil)
	f.create("other", nil)
	_, err := f.PatchRoom(t.Context(), "sale", 0, []byte(`{"batchSize":5}`))
	require.NoError(t, err)
	require.NoError(t, f.DeleteRoom(t.Context(), "other", "other"))
	v, err := f.Audit(t.Context(), cli.Page{Filter: "sale"})
	require.NoError(t, err)
	table := shown(t, v)
	require.Regexp(t, `(?m)room\.update +sale +2 +batchSize 50 -> 5$`, table)
	require.Regexp(t, `(?m)room\.create +sale +1 +made$`, table)
	require.NotContains(t, table, "other")
	v, err = f.Audit(t.Context(), cli.Page{Limit: 1})
	require.NoError(t, err)
	require.Regexp(t, `(?m)room\.delete +other +1 +gone$`, shown(t, v))
	require.Regexp(t, `there may be more: --before \d+`, shown(t, v))
}

func TestStatsAreThoseOfRedis(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale", nil)
	_, err := f.Stats(t.Context(), "sale")
	require.Equal(t, "conflict", refusal(t, err).Code, "nobody has begun the room")
	f.begin("sale")
	v, err := f.Stats(t.Context(), "sale")
	require.NoError(t, err)
	table := shown(t, v)
	require.Regexp(t, `(?m)^room +sale +OPEN$`, table)
	require.Regexp(t, `(?m)^last tick +never$`, table)
	require.Regexp(t, `(?m)^lane standard +0 +waiting, 0 let through$`, table)
}

func TestProductKeepsWhatIsNotNamedButNeverItsStock(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := cli.ParseProduct([]string{"priceCents=5"})
	require.EqualError(t, err, "stock must be given: it counts from now on, and orders take from it all the time")
	_, err = cli.ParseProduct([]string{"stock=x", "foo=1", "currency=eur", "stock=2", "bar"})
	require.ErrorContains(t, err, "stock is there twice")
	for _, field := range []string{"stock must be", "foo is not", "currency must be", "bar must be written as field=value"} {
		require.ErrorContains(t, err, field)
	}

	fields, err := cli.ParseProduct([]string{"stock=5"})
	require.NoError(t, err)
	_, err = f.PutProduct(t.Context(), "demo", 0, fields)
	require.ErrorContains(t, err, "there is no product demo yet: give priceCents and currency too")
	whole, err := cli.ParseProduct([]string{"stock=5", "priceCents=1990", "currency=EUR"})
	require.NoError(t, err)
	v, err := f.PutProduct(t.Context(), "demo", 0, whole)
	require.NoError(t, err)
	require.Contains(t, shown(t, v), "19.90 EUR")

	fields, err = cli.ParseProduct([]string{"stock=7"})
	require.NoError(t, err)
	_, err = f.PutProduct(t.Context(), "demo", 0, fields)
	require.NoError(t, err)
	p, err := f.store.Product(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, []any{int64(7), int64(1990), "EUR", int64(2)}, []any{p.Stock, p.PriceCents, p.Currency, p.Version})
	_, err = f.PutProduct(t.Context(), "demo", 1, whole)
	require.Equal(t, "precondition-failed", refusal(t, err).Code)
	v, err = f.GetProduct(t.Context(), "demo")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^stock +7$`, shown(t, v))
}

// A price that somebody changes between the read and the write must not be
// undone by a command that only names the stock.
func TestProductThatIsChangedMeanwhileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	put := func(price int64) {
		_, _, err := f.store.PutProduct(t.Context(), room.Product{SKU: "demo", Stock: 5, PriceCents: price, Currency: "EUR"}, 0, ann)
		require.NoError(t, err)
	}
	put(100)
	target, err := url.Parse(f.url)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method == http.MethodGet {
			put(200)
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	fields, err := cli.ParseProduct([]string{"stock=7"})
	require.NoError(t, err)
	_, err = client(server.URL, f.token).PutProduct(t.Context(), "demo", 0, fields)
	require.Equal(t, "precondition-failed", refusal(t, err).Code)
}
