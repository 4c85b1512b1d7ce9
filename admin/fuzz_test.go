package admin

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzIfMatch holds that a version is what we have written into an ETag, byte for
// byte; anything else that is there matches nothing.
func FuzzIfMatch(f *testing.F) {
	for _, seed := range []string{`"1"`, `*`, ``, `W/"1"`, `"01"`, `"1", "2"`, `"-1"`, `"9223372036854775808"`, `1`, `""`, `"1`, `"+1"`, `"1e1"`, "\"1\"\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequest(http.MethodPatch, "/", nil)
		r.Header["If-Match"] = []string{text}
		version, given := ifMatch(r)
		require.True(t, given, "what is there is never taken for nothing")
		switch {
		case text == "*":
			require.Zero(t, version)
		case version != noVersion:
			require.Positive(t, version)
			require.Equal(t, strconv.Quote(strconv.FormatInt(version, 10)), text)
		}
	})
}

// FuzzTokens holds that nothing of a third part is said back, be it a hash or the
// token itself, and that what is read lets in nobody without a token.
func FuzzTokens(f *testing.F) {
	hash := strings.Repeat("ab", 32)
	for _, seed := range []string{"ann:admin:" + hash, "ann:viewer:" + hash + ",bob:operator:" + strings.Repeat("cd", 32), "", ",", "ann:admin", "ann:root:" + hash, "ann:admin:canaryCANARY",
		"a\nb:admin:" + hash, "ann:admin:" + hash + ":x", "ann:admin:" + strings.ToUpper(hash)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := ParseTokens(text)
		if err != nil {
			for part := range strings.SplitSeq(text, ",") {
				if fields := strings.SplitN(part, ":", 3); len(fields) == 3 && len(fields[2]) > 8 && !strings.Contains(fields[0]+fields[1], fields[2]) {
					require.NotContains(t, err.Error(), fields[2])
				}
			}
			return
		}
		_, ok := tokens.find("")
		require.False(t, ok && !strings.Contains(text, hex.EncodeToString([]byte{0xe3, 0xb0, 0xc4, 0x42})), "nobody has shown a token")
	})
}

// FuzzAuthorization holds that a token is what follows one Bearer, and nothing of
// another scheme.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{"Bearer abc", "bearer abc", "Basic abc", "Bearer", "Bearer ", "Bearer a b", " Bearer abc", "Bearer\tabc", ""} {
		f.Add(seed, false)
	}
	f.Add("Bearer abc", true)
	f.Fuzz(func(t *testing.T, text string, twice bool) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Authorization"] = []string{text}
		if twice {
			r.Header.Add("Authorization", text)
		}
		got := bearer(r)
		if twice || len(text) < 7 || !strings.EqualFold(text[:7], "Bearer ") {
			require.Empty(t, got)
			return
		}
		require.Equal(t, strings.TrimSpace(text[7:]), got)
	})
}
