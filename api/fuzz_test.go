package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// FuzzCookie holds that whoever a header of cookies makes somebody, it holds a
// ticket of ours for this room, byte for byte.
func FuzzCookie(f *testing.F) {
	ring, err := credential.ParseRing("k:" + strings.Repeat("A", 43) + "=")
	require.NoError(f, err)
	now := time.Unix(1_764_500_000, 0)
	good, err := ring.SignTicket(credential.Ticket{Room: "sale", Sale: 1, Generation: 1, Member: "ann", Place: queue.Place{Score: 1 << 50}, IssuedAt: now})
	require.NoError(f, err)
	other, err := ring.SignTicket(credential.Ticket{Room: "other", Sale: 1, Generation: 1, Member: "bob", Place: queue.Place{Score: 1 << 50}, IssuedAt: now})
	require.NoError(f, err)
	for _, seed := range []string{
		"linekeeper_sale=" + good.Reveal(), "linekeeper_sale=" + other.Reveal(), "linekeeper_other=" + good.Reveal(), "linekeeper_sale=; linekeeper_sale=" + good.Reveal(),
		`linekeeper_sale="` + good.Reveal() + `"`, "linekeeper_sale=" + good.Reveal() + ";linekeeper_sale=x", ";;=;", "linekeeper_sale", "\x00", "a=\"\\", " linekeeper_sale = x",
	} {
		f.Add(seed)
	}
	a := &API{Options: Options{Ring: ring}}
	f.Fuzz(func(t *testing.T, cookies string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Cookie"] = []string{cookies}
		v := &view{Snapshot: queue.Snapshot{Now: now}, settings: room.Defaults(), read: time.Now()}
		c, err := a.caller(r, "sale", v)
		require.NoError(t, err, "a bad cookie counts as none: a browser can't take it back")
		require.Equal(t, c.hasTicket, c.member != "")
		if c.member != "" {
			require.Equal(t, "ann", c.member)
			require.Contains(t, cookies, good.Reveal())
		}
		all, err := a.proofs(r)
		require.NoError(t, err)
		for _, shown := range all.tickets {
			text, err := ring.SignTicket(shown)
			require.NoError(t, err)
			require.Contains(t, cookies, text.Reveal())
		}
	})
}

// FuzzIdempotencyKey holds that a key is taken as it is sent, or not at all.
func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"k", "", " ", "a b", "a\x7f", "é", strings.Repeat("k", 255), strings.Repeat("k", 256), "a\r\nb", "\x00", "a,b"} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, twice bool) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header["Idempotency-Key"] = []string{text}
		if twice {
			r.Header.Add("Idempotency-Key", text)
		}
		got, err := idempotencyKey(r)
		sane := len(text) >= 1 && len(text) <= 255 && strings.Trim(text, "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~") == ""
		for _, c := range []byte(text) {
			sane = sane && c > ' ' && c < 0x7f
		}
		if !sane || twice {
			require.ErrorIs(t, err, errIdempotencyKey)
			return
		}
		require.NoError(t, err)
		require.Equal(t, text, got)
	})
}
