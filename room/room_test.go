package room_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// anySettings draws settings that are valid.
func anySettings(t *rapid.T) room.Settings {
	s := room.Defaults()
	between := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	s.BatchSize = between("batchSize", 1, 10_000)
	s.IntervalMs = between("intervalMs", 100, 60_000)
	s.ClaimLeaseSeconds = between("claimLeaseSeconds", 11, 300)
	s.EntryTokenTTLSeconds = between("entryTokenTtlSeconds", max(15, s.ClaimLeaseSeconds), 86_400)
	s.PickupTTLSeconds = between("pickupTtlSeconds", 10, 3600)
	s.Capacity = between("capacity", 0, 10_000_000)
	s.MaxInFlightOrders = between("maxInFlightOrders", 0, 100_000)
	s.MaxWaiting = between("maxWaiting", 1, 10_000_000)
	s.AwayAfterSeconds = between("awayAfterSeconds", 90, 86_400)
	s.SettleSeconds = between("settleSeconds", 0, 600)
	s.ForgetAfterSeconds = between("forgetAfterSeconds", max(60, s.SettleSeconds+1), 604_800)
	s.ProcessingTimeoutSeconds = between("processingTimeoutSeconds", 1, 60)
	s.DoneTTLSeconds = between("doneTtlSeconds", 60, 604_800)
	s.FailOpenAfterSeconds = between("failOpenAfterSeconds", 1, 3600)
	s.Lanes = []room.Lane{{Name: rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,31}`).Draw(t, "lane"), Weight: between("weight", 1, 1000)}}
	s.Paused, s.Draining = rapid.Bool().Draw(t, "paused"), rapid.Bool().Draw(t, "draining")
	s.Off, s.Eager = rapid.Bool().Draw(t, "off"), rapid.Bool().Draw(t, "eager")
	s.OneOrderPerMember = rapid.Bool().Draw(t, "oneOrderPerMember")
	s.DirectAdmission = !s.OneOrderPerMember && rapid.Bool().Draw(t, "directAdmission")
	s.EnterNeedsTicket, s.OutsideChallenge = rapid.Bool().Draw(t, "enterNeedsTicket"), rapid.Bool().Draw(t, "outsideChallenge")
	s.InvitedOnly = rapid.Bool().Draw(t, "invitedOnly")
	s.ReturnURLs = rapid.SliceOfN(rapid.StringMatching(`https://[a-z0-9]{1,8}\.example(/[a-z]{1,5})?`), 0, 5).Draw(t, "returnUrls")
	s.Message = rapid.MapOfN(rapid.StringMatching(`[a-z]{2,3}(-[A-Z]{2})?`), anyText(), 0, 4).Draw(t, "message")
	if rapid.Bool().Draw(t, "stocked") {
		sku := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,63}`).Draw(t, "stock")
		s.Stock, s.Overbook = &sku, float64(between("overbook", 1000, 10_000))/1000
	}
	anyTimes(t, &s)
	return s
}

func anyText() *rapid.Generator[string] {
	return rapid.StringMatching(`[^\p{Cc}]{1,60}`).Filter(func(s string) bool { return !strings.Contains(s, "\ufffd") })
}

// anyTimes gives some of the three, in order.
func anyTimes(t *rapid.T, s *room.Settings) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, field := range []**time.Time{&s.OpensAt, &s.AdmitsAt, &s.ClosesAt} {
		at = at.Add(time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "later")) * time.Microsecond)
		if rapid.Bool().Draw(t, "given") {
			given := at
			*field = &given
		}
	}
}

func marshal(t interface{ Fatalf(string, ...any) }, s room.Settings) []byte {
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("marshal settings: %v", err)
	}
	return body
}

func TestParseGivesBackWhatWasMarshalled(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anySettings(t)
		body := marshal(t, s)
		for name, read := range map[string]func([]byte) (room.Settings, error){"Parse": room.Parse, "Stored": room.Stored} {
			back, err := read(body)
			if err != nil {
				t.Fatalf("%s refused valid settings: %v\n%s", name, err, body)
			}
			if diff := cmp.Diff(s, back); diff != "" {
				t.Fatalf("%s changed the settings (-was +is):\n%s", name, diff)
			}
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("Validate refused what Parse takes: %v", err)
		}
	})
}

// anyPatch draws a valid patch: some of the fields of other settings, some nulls.
func anyPatch(t *rapid.T) []byte {
	var full map[string]any
	require.NoError(t, json.Unmarshal(marshal(t, anySettings(t)), &full))
	patch := map[string]any{}
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"batchSize", "maxWaiting", "pickupTtlSeconds",
		"lanes", "message", "returnUrls", "paused", "draining", "doneTtlSeconds"}), rapid.ID[string]).Draw(t, "fields") {
		patch[name] = full[name]
		if rapid.Bool().Draw(t, "null") {
			patch[name] = nil
		}
	}
	body, err := json.Marshal(patch)
	require.NoError(t, err)
	return body
}

func TestMergePatchTwiceIsMergePatchOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cur, patch := anySettings(t), anyPatch(t)
		before := string(marshal(t, cur))
		once, err := room.MergePatch(cur, patch)
		if err != nil {
			t.Skip("together they are not valid")
		}
		twice, err := room.MergePatch(once, patch)
		require.NoError(t, err)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("the second application of %s changed something:\n%s", patch, diff)
		}
		if after := string(marshal(t, cur)); after != before {
			t.Fatalf("MergePatch wrote to its argument:\nwas %s\nis  %s", before, after)
		}
	})
}

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	const want = `{"batchSize":50,"intervalMs":1000,"entryTokenTtlSeconds":300,"pickupTtlSeconds":30,"claimLeaseSeconds":15,
		"capacity":0,"maxInFlightOrders":0,"maxWaiting":100000,"awayAfterSeconds":120,"forgetAfterSeconds":1800,
		"processingTimeoutSeconds":5,"doneTtlSeconds":3600,"settleSeconds":40,"lanes":[{"name":"standard","weight":1}],
		"priority":"ratio","maxWaitSeconds":0,"timeZone":"UTC","adaptive":false,"directAdmission":false,"eager":false,"stock":null,"overbook":1,
		"opensAt":null,"admitsAt":null,"closesAt":null,"draw":false,"paused":false,"draining":false,"off":false,
		"oneOrderPerMember":false,"enterNeedsTicket":false,"invitedOnly":false,
		"proofOfWorkBits":0,"proofOfWorkMaxBits":0,"proofOfWorkRate":100,"outsideChallenge":false,"fail":"closed","failOpenAfterSeconds":30,"binding":"off",
		"returnUrls":[],"message":{}}`
	require.JSONEq(t, want, string(marshal(t, room.Defaults())))
	require.NoError(t, room.Defaults().Validate())
	empty, err := room.Parse([]byte(`{}`))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(room.Defaults(), empty))
}

func TestWholeNumbersOutOfTheirRangeAreRefusedWithFieldAndRange(t *testing.T) {
	t.Parallel()
	ranges := map[string][2]int{
		"batchSize": {1, 10_000}, "intervalMs": {100, 60_000}, "entryTokenTtlSeconds": {15, 86_400},
		"pickupTtlSeconds": {10, 3600}, "claimLeaseSeconds": {11, 300}, "capacity": {0, 10_000_000},
		"maxInFlightOrders": {0, 100_000}, "maxWaiting": {1, 10_000_000}, "awayAfterSeconds": {90, 86_400},
		"forgetAfterSeconds": {60, 604_800}, "processingTimeoutSeconds": {1, 60}, "doneTtlSeconds": {60, 604_800},
		"settleSeconds": {0, 600}, "maxWaitSeconds": {0, 86_400}, "failOpenAfterSeconds": {1, 3600},
		"proofOfWorkBits": {0, 24}, "proofOfWorkRate": {1, 100_000},
	}
	for field, r := range ranges {
		low, high := r[0], r[1]
		nonsense := []string{"1e309", "0.5", `"10"`, "-0", "1e2", "1.0", "true", "[]", "{}", "9223372036854775808", "9007199254740993",
			fmt.Sprint(low - 1), fmt.Sprint(high + 1)}
		for _, value := range nonsense {
			_, err := room.MergePatch(room.Defaults(), fmt.Appendf(nil, `{%q:%s}`, field, value))
			var problems room.Problems
			require.ErrorAs(t, err, &problems, "%s: %s", field, value)
			got := value
			switch value {
			case "[]":
				got = "a list"
			case "{}":
				got = "an object"
			}
			want := room.Problem{Field: field, Detail: fmt.Sprintf("must be a whole number from %d to %d, got %s", low, high, got)}
			require.Equal(t, room.Problems{want}, problems, "%s: %s", field, value)
		}
	}
}

func TestTheEndsOfEveryRangeAreTaken(t *testing.T) {
	t.Parallel()
	for _, patch := range []string{
		`{"batchSize":1,"intervalMs":100,"pickupTtlSeconds":10,"claimLeaseSeconds":11,"entryTokenTtlSeconds":15,"capacity":0,
			"maxInFlightOrders":0,"maxWaiting":1,"awayAfterSeconds":90,"settleSeconds":0,"forgetAfterSeconds":60,
			"processingTimeoutSeconds":1,"doneTtlSeconds":60,"failOpenAfterSeconds":1}`,
		`{"batchSize":10000,"intervalMs":60000,"pickupTtlSeconds":3600,"claimLeaseSeconds":300,"entryTokenTtlSeconds":86400,
			"capacity":10000000,"maxInFlightOrders":100000,"maxWaiting":10000000,"awayAfterSeconds":86400,"settleSeconds":600,
			"forgetAfterSeconds":604800,"processingTimeoutSeconds":60,"doneTtlSeconds":604800,"failOpenAfterSeconds":3600}`,
	} {
		_, err := room.Parse([]byte(patch))
		require.NoError(t, err)
	}
}

func TestEveryProblemIsToldAtOnceWithItsField(t *testing.T) {
	t.Parallel()
	_, err := room.Parse([]byte(`{"batchSize":0,"paused":"yes","lanes":[{"name":"UP","weight":0},{"name":"a","weight":1,"color":1}],
		"message":{"english":"hi","de":""},"returnUrls":["http://shop.example"],"opensAt":"tomorrow","zebra":1,"apple":2,"fail":"maybe"}`))
	var problems room.Problems
	require.ErrorAs(t, err, &problems)
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	require.Equal(t, []string{"batchSize", "lanes[1].color", "opensAt", "paused", "fail",
		"returnUrls[0]", "message.de", "message.english", "apple", "zebra"}, fields)
	for _, p := range problems {
		require.Contains(t, err.Error(), p.Field+" "+p.Detail)
	}
}

func TestValidateNamesTheExactFieldAndWhatWasGot(t *testing.T) {
	t.Parallel()
	at := func(hour int) *time.Time {
		v := time.Date(2030, 1, 1, hour, 0, 0, 0, time.UTC)
		return &v
	}
	noSKU, long := "a b", strings.Repeat("x", 501)
	for name, tc := range map[string]struct {
		change func(*room.Settings)
		want   room.Problem
	}{
		"no lane":           {func(s *room.Settings) { s.Lanes = nil }, room.Problem{Field: "lanes", Detail: "must have 1 to 4 lanes, got 0"}},
		"lane weight":       {func(s *room.Settings) { s.Lanes[0].Weight = 0 }, room.Problem{Field: "lanes[0].weight", Detail: "must be a whole number from 1 to 1000, got 0"}},
		"lane name":         {func(s *room.Settings) { s.Lanes[0].Name = "a b" }, room.Problem{Field: "lanes[0].name", Detail: `must match ^[a-z0-9][a-z0-9_-]{0,31}$, got "a b"`}},
		"token below lease": {func(s *room.Settings) { s.EntryTokenTTLSeconds, s.ClaimLeaseSeconds = 20, 30 }, room.Problem{Field: "entryTokenTtlSeconds", Detail: "must be at least claimLeaseSeconds (30), got 20"}},
		"settling too long": {func(s *room.Settings) { s.ForgetAfterSeconds, s.SettleSeconds = 100, 100 }, room.Problem{Field: "forgetAfterSeconds", Detail: "must be more than settleSeconds (100), got 100"}},
		"admits early":      {func(s *room.Settings) { s.OpensAt, s.AdmitsAt = at(2), at(1) }, room.Problem{Field: "admitsAt", Detail: "must not be before opensAt (2030-01-01T02:00:00Z), got 2030-01-01T01:00:00Z"}},
		"closes early":      {func(s *room.Settings) { s.AdmitsAt, s.ClosesAt = at(2), at(1) }, room.Problem{Field: "closesAt", Detail: "must not be before admitsAt (2030-01-01T02:00:00Z), got 2030-01-01T01:00:00Z"}},
		"closes unopened":   {func(s *room.Settings) { s.OpensAt, s.ClosesAt = at(2), at(1) }, room.Problem{Field: "closesAt", Detail: "must not be before opensAt (2030-01-01T02:00:00Z), got 2030-01-01T01:00:00Z"}},
		"zero time":         {func(s *room.Settings) { s.OpensAt = &time.Time{} }, room.Problem{Field: "opensAt", Detail: "must be an RFC 3339 time from 2000 to 2199 such as 2030-01-31T18:00:00Z, got 0001-01-01T00:00:00Z"}},
		"no sku":            {func(s *room.Settings) { s.Stock = &noSKU }, room.Problem{Field: "stock", Detail: `must be null or a product's sku, got "a b"`}},
		"long message":      {func(s *room.Settings) { s.Message["en"] = long }, room.Problem{Field: "message.en", Detail: "must be a text of 1 to 500 characters without control or broken ones, got 501"}},
		"message with NUL":  {func(s *room.Settings) { s.Message["en"] = "a\x00" }, room.Problem{Field: "message.en", Detail: "must be a text of 1 to 500 characters without control or broken ones, got some"}},
		"broken message":    {func(s *room.Settings) { s.Message["en"] = "a\xff" }, room.Problem{Field: "message.en", Detail: "must be a text of 1 to 500 characters without control or broken ones, got some"}},
		"U+FFFD in message": {func(s *room.Settings) { s.Message["en"] = "a\ufffd" }, room.Problem{Field: "message.en", Detail: "must be a text of 1 to 500 characters without control or broken ones, got some"}},
		"language":          {func(s *room.Settings) { s.Message["e\n"] = "hi" }, room.Problem{Field: "message.e\n", Detail: `must be named by a language tag such as en or pt-BR, got "e\n"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := room.Defaults()
			tc.change(&s)
			require.Equal(t, room.Problems{tc.want}, s.Validate())
		})
	}
}

func TestWhatCantStandBesideADrawIsRefused(t *testing.T) {
	t.Parallel()
	for patch, field := range map[string]string{
		`{"draw":true}`: "admitsAt",
		`{"draw":true,"admitsAt":"2030-01-31T18:00:00Z","priority":"boost"}`:     "priority",
		`{"draw":true,"admitsAt":"2030-01-31T18:00:00Z","directAdmission":true}`: "directAdmission",
		`{"draw":true,"admitsAt":"2030-01-31T18:00:00Z","maxWaitSeconds":60}`:    "maxWaitSeconds",
		`{"priority":"lottery","maxWaitSeconds":60}`:                             "maxWaitSeconds",
	} {
		_, err := room.Parse([]byte(patch))
		var problems room.Problems
		require.ErrorAs(t, err, &problems, patch)
		require.Equal(t, field, problems[0].Field, patch)
	}
	for _, patch := range []string{
		`{"draw":true,"admitsAt":"2030-01-31T18:00:00Z"}`, `{"priority":"lottery"}`,
		`{"draw":true,"admitsAt":"2030-01-31T18:00:00Z","priority":"lottery"}`,
	} {
		_, err := room.Parse([]byte(patch))
		require.NoError(t, err, patch)
	}
}

func TestDirectAdmissionIsRefusedWhereItCannotBeKept(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"oneOrderPerMember", "draw"} {
		_, err := room.Parse([]byte(`{"directAdmission":true,"` + other + `":true}`))
		var problems room.Problems
		require.ErrorAs(t, err, &problems)
		require.Contains(t, problems, room.Problem{Field: "directAdmission", Detail: "must be false where " + other + " is true"})
	}
	_, err := room.Parse([]byte(`{"directAdmission":true,"off":true,"eager":true}`))
	require.NoError(t, err)
}

func TestTwoLanesOfOneNameAreRefused(t *testing.T) {
	t.Parallel()
	s := room.Defaults()
	s.Lanes = []room.Lane{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}, {Name: "a", Weight: 1}}
	var problems room.Problems
	require.ErrorAs(t, s.Validate(), &problems)
	require.Equal(t, room.Problem{Field: "lanes[2].name", Detail: `must be another than the lanes before it have, got "a"`}, problems[0])
}

func TestReturnURLsThatABrowserReadsDifferentlyAreRefused(t *testing.T) {
	t.Parallel()
	for _, evil := range []string{"//evil.example", `/\evil.example`, "/%09/evil.example", "https:evil.example", "https://good.example@evil.example",
		"javascript:alert(1)", "http://shop.example", "https://", "https://shop.example//evil.example", "https://shop.example\t/",
		`https://shop.example\@evil.example`, "https://SHOP.example", "https://shop.example/?next=//evil.example", "https://shop.example/#x",
		"https://xn--/ .example", "https://[::1]/", "https://shop.example/a b", "HTTPS://shop.example", " https://shop.example", "https://shop.example/" + strings.Repeat("a", 500)} {
		s := room.Defaults()
		s.ReturnURLs = []string{"https://shop.example/cart", evil}
		var problems room.Problems
		require.ErrorAs(t, s.Validate(), &problems, evil)
		require.Equal(t, "returnUrls[1]", problems[0].Field, evil)
	}
	s := room.Defaults()
	s.ReturnURLs = []string{"https://shop.example", "https://shop.example:8443/cart/a%20b"}
	require.NoError(t, s.Validate())
}

func TestDocumentsThatAreNotOneCleanObjectAreRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, ` `, `null`, `[]`, `5`, `"a"`, `{"batchSize":1}{"batchSize":2}`, `{"batchSize":1} x`, `{"batchSize":1,}`,
		`{"batchSize":1,"batchSize":1}`, `{"message":{"en":"a","en":"b"}}`, `{"message":{"en":"\ud800"}}`, "{\"message\":{\"en\":\"\xff\"}}",
		`{"\ud800":1}`, `{"batchSize":01}`, `{"batchSize":+1}`, `{"batchSize":NaN}`, `{"a":` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`,
		strings.Repeat(`{"a":`, 10_000)} {
		_, err := room.Parse([]byte(body))
		require.ErrorIs(t, err, room.ErrJSON, "%.60s", body)
		_, err = room.DecodeObject([]byte(body))
		require.ErrorIs(t, err, room.ErrJSON, "%.60s", body)
	}
}

func TestNullGivesASettingItsDefaultBack(t *testing.T) {
	t.Parallel()
	cur, err := room.Parse([]byte(`{"batchSize":7,"opensAt":"2030-01-01T10:00:00+02:00","message":{"en":"Hi","de":"Hallo"},"returnUrls":["https://a.example"]}`))
	require.NoError(t, err)
	require.Equal(t, "2030-01-01T08:00:00Z", cur.OpensAt.Format(time.RFC3339), "times are kept in UTC")

	next, err := room.MergePatch(cur, []byte(`{"batchSize":null,"opensAt":null,"returnUrls":null,"message":{"de":null,"fr":"Salut"}}`))
	require.NoError(t, err)
	want := room.Defaults()
	want.Message = map[string]string{"en": "Hi", "fr": "Salut"}
	require.Empty(t, cmp.Diff(want, next))
	require.Equal(t, map[string]string{"en": "Hi", "de": "Hallo"}, cur.Message, "the settings before are untouched")

	next, err = room.MergePatch(next, []byte(`{"message":null}`))
	require.NoError(t, err)
	require.Empty(t, next.Message)
}

func TestARefusedPatchGivesTheSettingsBackUnchanged(t *testing.T) {
	t.Parallel()
	cur := room.Defaults()
	next, err := room.MergePatch(cur, []byte(`{"batchSize":7,"intervalMs":1}`))
	require.Error(t, err)
	require.Empty(t, cmp.Diff(cur, next))
}

func TestStoredSettingsOfANewerVersionCanBeRead(t *testing.T) {
	t.Parallel()
	s, err := room.Stored([]byte(`{"batchSize":7,"somethingNew":{"a":1},"adaptive":true}`))
	require.NoError(t, err)
	require.Equal(t, 7, s.BatchSize)
	_, err = room.Stored([]byte(`{"batchSize":"many"}`))
	require.Error(t, err)
	_, err = room.Stored([]byte(`nonsense`))
	require.ErrorIs(t, err, room.ErrJSON)
}

func TestRulesCarryEverySettingThatScriptsObey(t *testing.T) {
	t.Parallel()
	s, err := room.Parse([]byte(`{"batchSize":2,"intervalMs":300,"entryTokenTtlSeconds":40,"pickupTtlSeconds":11,"claimLeaseSeconds":12,
		"processingTimeoutSeconds":13,"awayAfterSeconds":140,"forgetAfterSeconds":150,"doneTtlSeconds":160,"settleSeconds":17,
		"capacity":18,"maxInFlightOrders":19,"maxWaiting":20,"lanes":[{"name":"a","weight":21}],"opensAt":"2030-01-01T00:00:00Z",
		"admitsAt":"2030-01-02T00:00:00Z","closesAt":"2030-01-03T00:00:00Z","paused":true,"draining":true,"oneOrderPerMember":true,"off":true,"eager":true,
		"stock":"demo","overbook":1.005}`))
	require.NoError(t, err)
	day := func(d int) time.Time { return time.Date(2030, 1, d, 0, 0, 0, 0, time.UTC) }
	want := queue.Rules{Batch: 2, Interval: 300 * time.Millisecond, TokenTTL: 40 * time.Second, PickupTTL: 11 * time.Second,
		ClaimLease: 12 * time.Second, ProcessingTimeout: 13 * time.Second, AwayAfter: 140 * time.Second, ForgetAfter: 150 * time.Second,
		DoneTTL: 160 * time.Second, Settle: 17 * time.Second, Capacity: 18, MaxInFlight: 19, MaxWaiting: 20, Weights: []int{21},
		OpensAt: day(1), AdmitsAt: day(2), ClosesAt: day(3), Paused: true, Draining: true, OneOrder: true, Off: true, Eager: true,
		Stock: "demo", Overbook: 1005}
	require.Empty(t, cmp.Diff(want, s.Rules()))
	require.True(t, room.Defaults().Rules().OpensAt.IsZero())
}

func TestOnlyHarmlessNamesAreValid(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "0", "default", "black-friday_2030", strings.Repeat("a", 64)} {
		require.True(t, room.ValidName(good), good)
	}
	for _, bad := range []string{"", "}", "a}{b", "*", "x:wait", "Ä", "A", "-a", "_a", "a\n", "a b", "a/b", "%61", strings.Repeat("a", 65)} {
		require.False(t, room.ValidName(bad), "%q", bad)
	}
}

func FuzzParseNeverPanicsAndNeverLetsInvalidSettingsThrough(f *testing.F) {
	f.Add([]byte(`{"batchSize":1,"lanes":[{"name":"a","weight":1}],"message":{"en":"x"},"opensAt":"2030-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"message":{"en":null},"returnUrls":["https://a.example"],"stock":"a"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := room.Parse(body)
		if err != nil {
			return
		}
		require.NoError(t, s.Validate())
		back, err := room.Parse(marshal(t, s))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(s, back))
	})
}
