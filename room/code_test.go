package room_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestACodeIsReadAsPeopleTypeIt(t *testing.T) {
	t.Parallel()
	code := "7K2M9-AB0CD-EF1GH-JKMNP"
	want, ending, ok := room.ParseCode(code)
	require.True(t, ok)
	require.Equal(t, "KMNP", ending)
	for _, typed := range []string{
		strings.ToLower(code), strings.ReplaceAll(code, "-", ""), strings.ReplaceAll(code, "-", " "), " " + code + " ",
		strings.Replace(code, "0", "o", 1), strings.Replace(code, "1", "I", 1), strings.Replace(code, "1", "l", 1),
	} {
		got, _, ok := room.ParseCode(typed)
		require.True(t, ok, typed)
		require.Equal(t, want, got, typed)
	}
	for _, typed := range []string{"", "-", code[:len(code)-1], code + "0", strings.Replace(code, "7", "U", 1), strings.Replace(code, "7", "é", 1), code + strings.Repeat("-", 64), code + "\n"} {
		_, _, ok := room.ParseCode(typed)
		require.False(t, ok, "%q", typed)
	}
}

func TestCodesAreFreshAndUseTheWholeAlphabet(t *testing.T) {
	t.Parallel()
	seen, letters := map[string]bool{}, map[rune]bool{}
	for range 1000 {
		code := room.NewCode()
		require.Regexp(t, `^[0-9A-HJKMNP-TV-Z]{5}(-[0-9A-HJKMNP-TV-Z]{5}){3}$`, code)
		require.False(t, seen[code])
		seen[code] = true
		for _, r := range code {
			letters[r] = true
		}
	}
	require.Len(t, letters, 32+1, "5 random bits a character, and the hyphen")
}

func TestWhatIsWrongWithARequestForCodesIsToldAtOnce(t *testing.T) {
	t.Parallel()
	want, err := room.ParseNewCodes([]byte(`{"lane":"vip","uses":3,"count":500}`))
	require.NoError(t, err)
	require.Equal(t, room.NewCodes{Lane: "vip", Uses: 3, Count: 500}, want)
	want, err = room.ParseNewCodes([]byte(`{"lane":null}`))
	require.NoError(t, err)
	require.Equal(t, room.NewCodes{Uses: 1, Count: 1}, want)
	var problems room.Problems
	_, err = room.ParseNewCodes([]byte(`{"lane":"a b","uses":0,"count":10001,"x":1}`))
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems, 4)
	for _, body := range []string{`{}`, `{"id":1,"batch":1}`, `{"id":0}`, `{"id":"1"}`, `{"batch":1.5}`, `{"id":1,"x":1}`} {
		_, err := room.ParseRevocation([]byte(body))
		require.ErrorAs(t, err, &problems, body)
	}
	which, err := room.ParseRevocation([]byte(`{"batch":7}`))
	require.NoError(t, err)
	require.Equal(t, room.Revocation{Batch: 7}, which)
}

// FuzzAccessCode: whatever is typed, what passes is one code in one spelling.
func FuzzAccessCode(f *testing.F) {
	f.Add("7K2M9-AB0CD-EF1GH-JKMNP")
	f.Add("ollo ollo ollo ollo ollo")
	f.Add("\x00\xff---")
	f.Fuzz(func(t *testing.T, typed string) {
		hash, ending, ok := room.ParseCode(typed)
		if !ok {
			require.Zero(t, hash)
			return
		}
		require.Len(t, ending, 4)
		again, _, ok := room.ParseCode(strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(typed)))
		require.True(t, ok)
		require.Equal(t, hash, again)
		_, _, ok = room.ParseCode(typed + "0")
		require.False(t, ok, "one character more is no code")
	})
}
