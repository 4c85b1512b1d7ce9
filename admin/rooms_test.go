package admin_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARoomIsMadeShownListedAndDeleted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	a := f.call("viewer", "GET", "/admin/v1/rooms", "")
	require.Equal(t, []any{}, a.body["rooms"])

	a = f.call("admin", "POST", "/admin/v1/rooms", `{"name":"sale","settings":{"batchSize":7}}`)
	require.Equal(t, http.StatusCreated, a.status)
	require.Equal(t, `"1"`, a.header.Get("ETag"))
	require.Equal(t, "/admin/v1/rooms/sale", a.header.Get("Location"))
	require.ElementsMatch(t, []string{"name", "version", "sale", "generation", "settings", "released", "createdAt", "updatedAt"}, keys(a.body))
	require.Equal(t, 7.0, a.setting("batchSize"))
	require.Equal(t, 1000.0, a.setting("intervalMs"))
	require.Equal(t, 1.0, a.body["sale"])

	require.Equal(t, a.body, f.get("sale").body)
	require.Equal(t, `"1"`, f.get("sale").header.Get("ETag"))
	list := f.call("viewer", "GET", "/admin/v1/rooms", "").body["rooms"].([]any)
	require.Equal(t, []any{a.body}, list)
	f.refused(f.call("admin", "POST", "/admin/v1/rooms", `{"name":"sale"}`), 409, "room-exists")

	a = f.call("admin", "DELETE", "/admin/v1/rooms/sale", `{"confirm":"sale"}`)
	require.Equal(t, http.StatusNoContent, a.status)
	f.refused(f.call("viewer", "GET", "/admin/v1/rooms/sale", ""), 404, "room-not-found")
	require.Equal(t, 2.0, f.create("sale").body["sale"], "the name goes on with the next sale")
}

func TestAPatchChangesOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	patch := headers{"If-Match": `"1"`, "Content-Type": "application/merge-patch+json; charset=utf-8"}
	a := f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"batchSize":200,"message":{"en":"Hi"}}`, patch)
	require.Equal(t, http.StatusOK, a.status, "%v", a.body)
	require.Equal(t, `"2"`, a.header.Get("ETag"))
	require.Equal(t, 200.0, a.setting("batchSize"))
	require.Equal(t, map[string]any{"en": "Hi"}, a.setting("message"))
	require.Equal(t, 100000.0, a.setting("maxWaiting"))

	a = f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"batchSize":null}`, headers{"If-Match": "*"})
	require.Equal(t, 50.0, a.setting("batchSize"), "null gives the default back")
	require.Equal(t, map[string]any{"en": "Hi"}, a.setting("message"))
	require.Equal(t, a.body, f.get("sale").body)
}

func TestAPatchMustSayWhichVersionItChanges(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	patch := func(h headers) answer {
		return f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"batchSize":7}`, h)
	}
	f.refused(patch(nil), 428, "precondition-required")
	for _, tag := range []string{`"2"`, `"0"`, `W/"1"`, `1`, `"01"`, `"+1"`, `"1`, `"1", "2"`, `""`, `"-1"`, `"*"`, `"99999999999999999999"`} {
		f.refused(patch(headers{"If-Match": tag}), 412, "precondition-failed")
	}
	require.Contains(t, patch(headers{"If-Match": `"2"`}).body["detail"], "version in force is 1")
	require.Equal(t, 1.0, f.get("sale").body["version"])
	require.Len(t, f.changes("sale"), 1)
	require.Equal(t, 200, patch(headers{"If-Match": `"1"`}).status)
}

func TestOfTwoOperatorsWithOneETagOneGets412(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	tag := headers{"If-Match": f.create("sale").header.Get("ETag")}
	first := f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"batchSize":7}`, tag)
	require.Equal(t, 200, first.status)
	f.refused(f.call("admin", "PATCH", "/admin/v1/rooms/sale", `{"batchSize":8}`, tag), 412, "precondition-failed")
	require.Equal(t, 7.0, f.get("sale").setting("batchSize"))
}

// Twenty operators raise the batch by one each, reading and trying again until
// their own change is in: none is lost, whoever comes when.
func TestNoUpdateIsLostUnderTwentyParallelPatches(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	var done sync.WaitGroup
	for range 20 {
		done.Go(func() {
			for {
				cur := f.get("sale")
				body := fmt.Sprintf(`{"batchSize":%d}`, int(cur.setting("batchSize").(float64))+1)
				a := f.call("operator", "PATCH", "/admin/v1/rooms/sale", body, headers{"If-Match": cur.header.Get("ETag")})
				if a.status == http.StatusOK {
					return
				}
				if a.status != http.StatusPreconditionFailed {
					t.Errorf("status %d: %v", a.status, a.body)
					return
				}
			}
		})
	}
	done.Wait()
	require.Equal(t, 70.0, f.get("sale").setting("batchSize"))
	require.Equal(t, 21.0, f.get("sale").body["version"])
	require.Len(t, f.changes("sale"), 21)
}

// Case 10, aws-solutions/virtual-waiting-room-on-aws (increment_serving_counter.py):
// amounts of nonsense.
func TestCase10NonsenseIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	before := f.create("sale").body
	for _, field := range []string{"batchSize", "capacity", "maxWaiting", "entryTokenTtlSeconds", "overbook"} {
		for _, value := range []string{"-5", "1e12", "0.5", `"5"`, "1e309", "9223372036854775807", "-0", "true", "[5]", "{}"} {
			a := f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"intervalMs":2000,"`+field+`":`+value+`}`, headers{"If-Match": "*"})
			f.refused(a, 422, "invalid-settings")
			require.Equal(t, []string{field}, a.fields())
		}
	}
	require.Equal(t, before, f.get("sale").body)
	require.Len(t, f.changes("sale"), 1)
}

// Case 10 again: nonsense about how lanes share.
func TestCase10NonsenseAboutLanesIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	before := f.create("sale").body
	for _, value := range []string{"-5", "1e12", "0.5", `"5"`, "1e309", "9223372036854775807", "-0", "true", "[5]", "{}"} {
		for field, patch := range map[string]string{
			"maxWaitSeconds":        `"maxWaitSeconds":` + value,
			"lanes[0].weight":       `"lanes":[{"name":"standard","weight":` + value + `}]`,
			"lanes[1].boostSeconds": `"priority":"boost","lanes":[{"name":"standard","weight":1},{"name":"vip","weight":1,"boostSeconds":` + value + `}]`,
		} {
			a := f.call("operator", "PATCH", "/admin/v1/rooms/sale", "{"+patch+"}", headers{"If-Match": "*"})
			f.refused(a, 422, "invalid-settings")
			require.Equal(t, []string{field}, a.fields(), value)
		}
	}
	require.Equal(t, before, f.get("sale").body)
	require.Len(t, f.changes("sale"), 1)
}

func TestLanesOfARoomThatLivesAreAddedToAndNothingElse(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	f.begin("sale")
	patch := func(lanes string) answer {
		return f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"lanes":`+lanes+`}`, headers{"If-Match": "*"})
	}
	a := patch(`[{"name":"standard","weight":3},{"name":"vip","weight":7}]`)
	require.Equal(t, http.StatusOK, a.status, "%v", a.body)
	for _, lanes := range []string{`[{"name":"standard","weight":3}]`, `[{"name":"vip","weight":7},{"name":"standard","weight":3}]`, "null"} {
		a = patch(lanes)
		f.refused(a, 422, "invalid-settings")
		require.Equal(t, []string{"lanes"}, a.fields())
	}
	require.Equal(t, http.StatusOK, patch(`[{"name":"standard","weight":9},{"name":"vip","weight":1},{"name":"press","weight":1}]`).status)
}

func TestAllProblemsOfAPatchAreToldAtOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	a := f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"batchSize":0,"lanes":[{"name":"a","weight":0}],"fail":"maybe","speed":9}`, headers{"If-Match": "*"})
	f.refused(a, 422, "invalid-settings")
	require.Equal(t, []string{"batchSize", "fail", "lanes[0].weight", "speed"}, a.fields())

	a = f.call("admin", "POST", "/admin/v1/rooms", `{"name":"NO","settings":{"batchSize":0}}`)
	f.refused(a, 422, "invalid-settings")
	require.Equal(t, []string{"name", "settings.batchSize"}, a.fields())
}

func TestPauseResumeAndDrainFlipTheirSwitches(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	for i, step := range []struct {
		call             string
		paused, draining bool
	}{{"pause", true, false}, {"drain", true, true}, {"resume", false, false}, {"drain", false, true}, {"resume", false, false}} {
		a := f.call("operator", "POST", "/admin/v1/rooms/sale/"+step.call, "")
		require.Equal(t, http.StatusOK, a.status, "%v", a.body)
		require.Equal(t, step.paused, a.setting("paused"), step.call)
		require.Equal(t, step.draining, a.setting("draining"), step.call)
		require.Equal(t, fmt.Sprintf(`"%d"`, i+2), a.header.Get("ETag"))
		require.Equal(t, "room."+step.call, f.changes("sale")[0]["action"])
	}
	again := f.call("operator", "POST", "/admin/v1/rooms/sale/resume", `{}`)
	require.Equal(t, `"6"`, again.header.Get("ETag"), "resuming what runs is no change")
	f.refused(f.call("operator", "POST", "/admin/v1/rooms/sale/pause", "", headers{"If-Match": `"1"`}), 412, "precondition-failed")
	f.refused(f.call("operator", "POST", "/admin/v1/rooms/sale/pause", `{"for":"ever"}`), 400, "bad-request")
	require.Equal(t, false, f.get("sale").setting("paused"))
}

func TestOffEndsPauseAndDrainAndResumeEndsOff(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	for _, step := range []struct {
		call                  string
		paused, draining, off bool
	}{{"pause", true, false, false}, {"drain", true, true, false}, {"off", false, false, true}, {"pause", true, false, true}, {"resume", false, false, false}} {
		a := f.call("operator", "POST", "/admin/v1/rooms/sale/"+step.call, "")
		require.Equal(t, http.StatusOK, a.status, "%v", a.body)
		got := []any{a.setting("paused"), a.setting("draining"), a.setting("off")}
		require.Equal(t, []any{step.paused, step.draining, step.off}, got, step.call)
		require.Equal(t, "room."+step.call, f.changes("sale")[0]["action"])
	}
	f.refused(f.call("viewer", "POST", "/admin/v1/rooms/sale/off", ""), 403, "forbidden")
}

func TestAReleaseIsAddedUpAuditedAndANewVersion(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	path := "/admin/v1/rooms/sale/release"
	first := f.call("operator", "POST", path, `{"count":25}`, headers{"If-Match": `"1"`})
	require.Equal(t, http.StatusOK, first.status, "%v", first.body)
	require.Equal(t, 25.0, first.body["released"])
	require.Equal(t, `"2"`, first.header.Get("ETag"))
	f.refused(f.call("operator", "POST", path, `{"count":25}`, headers{"If-Match": `"1"`}), 412, "precondition-failed")
	require.Equal(t, 30.0, f.call("operator", "POST", path, `{"count":5}`).body["released"], "two calls are two releases")

	changes := f.changes("sale")
	require.Equal(t, []any{"room.release", "room.release", "room.create"}, []any{changes[0]["action"], changes[1]["action"], changes[2]["action"]})
	require.Equal(t, map[string]any{"released": 25.0}, changes[0]["before"])
	require.Equal(t, map[string]any{"released": 30.0}, changes[0]["after"])
	require.Equal(t, []any{"olaf", "operator", 3.0}, []any{changes[0]["actor"], changes[0]["role"], changes[0]["version"]})

	for _, body := range []string{`{}`, `{"count":0}`, `{"count":10001}`, `{"count":5,"x":1}`} {
		f.refused(f.call("operator", "POST", path, body), 422, "invalid-settings")
	}
	f.refused(f.call("viewer", "POST", path, `{"count":5}`), 403, "forbidden")
	f.refused(f.call("operator", "POST", "/admin/v1/rooms/nowhere/release", `{"count":5}`), 404, "room-not-found")
	require.Equal(t, 30.0, f.get("sale").body["released"])
}

func TestAFlushBeginsTheNextSaleAndKeepsTheSettings(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	before := f.create("sale")
	life := f.begin("sale")
	a := f.call("admin", "POST", "/admin/v1/rooms/sale/flush", `{"confirm":"sale"}`)
	require.Equal(t, http.StatusOK, a.status, "%v", a.body)
	require.Equal(t, 2.0, a.body["sale"])
	require.Greater(t, a.body["generation"], float64(life.Generation))
	require.Equal(t, before.body["settings"], a.body["settings"])
}

func TestWhatCannotBeUndoneMustBeConfirmedWithTheName(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	before := f.get("sale").body
	for _, call := range [][2]string{{"POST", "/admin/v1/rooms/sale/flush"}, {"DELETE", "/admin/v1/rooms/sale"}} {
		for _, body := range []string{"", `{}`, `{"confirm":"sales"}`, `{"confirm":true}`, `{"confirm":null}`, `{"confirm":"sale","force":true}`} {
			f.refused(f.call("admin", call[0], call[1], body), 422, "confirmation-required")
		}
		f.refused(f.call("admin", call[0], call[1], `{"confirm":"sale","confirm":"sale"}`), 400, "bad-request")
		f.refused(f.call("admin", call[0], call[1], `{"confirm":"sale"}`, headers{"Content-Type": "text/plain"}), 415, "unsupported-media-type")
	}
	require.Equal(t, before, f.get("sale").body)
}

func TestEveryCallOnARoomThatIsNotThereIs404(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, name := range []string{"nowhere", "UP", "a%7Db", "%2A", "x:wait", "%00"} {
		path := "/admin/v1/rooms/" + name
		f.refused(f.call("admin", "GET", path, ""), 404, "room-not-found")
		f.refused(f.call("admin", "PATCH", path, `{}`, headers{"If-Match": "*"}), 404, "room-not-found")
		f.refused(f.call("admin", "GET", path+"/snapshot", ""), 404, "room-not-found")
		for _, call := range []string{"pause", "resume", "drain"} {
			f.refused(f.call("admin", "POST", path+"/"+call, ""), 404, "room-not-found")
		}
	}
	f.refused(f.call("admin", "POST", "/admin/v1/rooms/nowhere/flush", `{"confirm":"nowhere"}`), 404, "room-not-found")
	f.refused(f.call("admin", "DELETE", "/admin/v1/rooms/nowhere", `{"confirm":"nowhere"}`), 404, "room-not-found")
}

func TestEveryChangeHasItsAuditRow(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	id := headers{"X-Request-Id": "req-42"}
	require.Equal(t, 200, f.call("operator", "PATCH", "/admin/v1/rooms/sale", `{"batchSize":7}`, headers{"If-Match": "*"}, id).status)
	require.Equal(t, 200, f.call("operator", "POST", "/admin/v1/rooms/sale/pause", "", id).status)
	require.Equal(t, 200, f.call("admin", "POST", "/admin/v1/rooms/sale/flush", `{"confirm":"sale"}`, id).status)
	require.Equal(t, 204, f.call("admin", "DELETE", "/admin/v1/rooms/sale", `{"confirm":"sale"}`, id).status)

	changes := f.changes("sale")
	var actions []any
	for _, c := range changes {
		actions = append(actions, c["action"])
		require.Equal(t, "127.0.0.1", c["remote"])
	}
	require.Equal(t, []any{"room.delete", "room.flush", "room.pause", "room.update", "room.create"}, actions)
	update := changes[3]
	require.Equal(t, []any{"olaf", "operator", "req-42", 2.0}, []any{update["actor"], update["role"], update["requestId"], update["version"]})
	require.Equal(t, 50.0, update["before"].(map[string]any)["batchSize"])
	require.Equal(t, 7.0, update["after"].(map[string]any)["batchSize"])
	require.Equal(t, true, changes[2]["after"].(map[string]any)["paused"])
	require.Equal(t, 1.0, changes[1]["before"].(map[string]any)["sale"])
	require.Equal(t, 2.0, changes[1]["after"].(map[string]any)["sale"])
	require.Nil(t, changes[0]["after"])
	require.Nil(t, changes[4]["before"])
	require.Equal(t, "ada", changes[4]["actor"])
}

func TestTheAuditListPages(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("sale")
	f.create("other")
	for range 2 {
		f.call("operator", "POST", "/admin/v1/rooms/sale/pause", "")
		f.call("operator", "POST", "/admin/v1/rooms/sale/resume", "")
	}
	var seen []any
	path := "/admin/v1/audit?limit=2&target=sale"
	next := ""
	for range 5 { // pages enough, and an end if the cursor stands still
		a := f.call("viewer", "GET", path+next, "")
		require.Equal(t, 200, a.status, "%v", a.body)
		for _, c := range a.body["changes"].([]any) {
			seen = append(seen, c.(map[string]any)["version"])
		}
		if a.body["next"] == nil {
			break
		}
		next = fmt.Sprintf("&before=%.0f", a.body["next"])
	}
	require.Equal(t, []any{5.0, 4.0, 3.0, 2.0, 1.0}, seen)
	for _, query := range []string{"limit=0", "limit=201", "limit=x", "before=-1", "before=1.5", "target=%00", "target=a%20b"} {
		f.refused(f.call("viewer", "GET", "/admin/v1/audit?"+query, ""), 400, "bad-request")
	}
}
