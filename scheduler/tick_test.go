package scheduler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
)

// always lets every reserve take the same member.
func always(res queue.Reservation) func(string, queue.Step) (queue.Reservation, error) {
	return func(string, queue.Step) (queue.Reservation, error) { return res, nil }
}

func TestProgressIsWrittenBeforeIssue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		res := someone(1, 700)
		res.Taken = append(res.Taken, queue.Candidate{Member: "old", Place: queue.Place{Lane: 0, Score: 20}})
		res.Watermarks, res.LastScore = []int64{30, 600}, 900
		s.reserve = always(res)
		s.run("only")
		s.after(100 * time.Millisecond)

		var order []string
		for _, c := range s.calls {
			if c.what == "reserve" || c.what == "advance" || c.what == "issue" {
				order = append(order, c.what)
			}
		}
		require.Equal(t, []string{"reserve", "advance", "issue"}, order)
		want := []queue.Progress{{Room: "a", Sale: 2, Floors: []int64{30, 700}, LastScore: 900}}
		require.Empty(t, cmp.Diff(want, s.made("advance", "")[0].progress), "a floor is the watermark, or what is about to be granted")
	})
}

func TestRoomsOfARoundShareOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rooms []string
		for i := range 100 {
			rooms = append(rooms, fmt.Sprintf("r%d", i))
		}
		s := newStage(t, rooms...)
		s.delay = time.Millisecond
		s.reserve = always(someone(0, 7))
		s.run("only")
		s.after(300 * time.Millisecond)
		require.Len(t, s.made("issue", ""), 100)
		require.LessOrEqual(t, len(s.made("advance", "")), 5)
	})
}

func TestRoomThatReservesDuringAWriteHasTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b")
		s.slow = 200 * time.Millisecond
		s.reserve = func(room string, step queue.Step) (queue.Reservation, error) {
			if room == "b" && step.Seq == 1 {
				return queue.Reservation{Wait: 100 * time.Millisecond}, nil
			}
			return someone(0, 7), nil
		}
		s.run("only")
		s.after(650 * time.Millisecond) // 200 to read, 200 each to write
		require.Len(t, s.made("advance", ""), 2)
		require.Len(t, s.made("issue", "b"), 1)
	})
}

func TestLongTickGoesOnWithoutSleeping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = func(_ string, step queue.Step) (queue.Reservation, error) {
			res := someone(0, step.Seq)
			res.More = step.Seq < 40
			return res, nil
		}
		s.run("only")
		s.after(4 * time.Millisecond)
		calls := s.made("reserve", "a")
		require.Len(t, calls, 40, "a batch of 10,000 takes forty calls")
		require.Len(t, s.made("issue", "a"), 40)
		for i, c := range calls {
			require.Equal(t, int64(i+1), c.step.Seq)
			require.Equal(t, queue.Take{Keep: c.step.Seq, Effective: 10, Max: scheduler.MaxTake}, c.take, "what an older call left goes back")
		}
	})
}

func TestBarredCandidatesAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		res := someone(0, 1)
		res.Taken = append(res.Taken, someone(0, 2).Taken...)
		s.reserve = always(res)
		s.barred = map[string]bool{"m1": true}
		s.run("only")
		s.after(100 * time.Millisecond)
		want := []queue.Decision{{Member: "m1"}, {Member: "m2", Grant: "grant-1"}}
		require.Equal(t, want, s.made("issue", "a")[0].decisions)
	})
}

func TestIssueOfUnknownOutcomeIsRepeatedWithTheSameGrants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = always(someone(0, 1))
		lost := 2
		s.issue = func(string, queue.Step) error {
			if lost--; lost >= 0 {
				return fmt.Errorf("no reply: %w", queue.ErrUnavailable)
			}
			return nil
		}
		s.run("only")
		s.after(900 * time.Millisecond)
		issues := s.made("issue", "a")
		require.Len(t, issues, 3)
		for _, c := range issues {
			require.Equal(t, issues[0].decisions, c.decisions)
			require.Equal(t, issues[0].step, c.step)
		}
	})
}

func TestRefusedIssueIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = always(someone(0, 1))
		s.issue = func(string, queue.Step) error { return errors.New("WRONGTYPE") }
		s.run("only")
		s.after(2 * time.Second)
		for i, c := range s.made("issue", "a") {
			require.Equal(t, int64(i+1), c.step.Seq, "each was sent once")
		}
	})
}

func TestPostgresDownPausesAdmissionButNotReaping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b")
		down := true
		s.advance = func([]queue.Progress) error {
			if down {
				return errors.New("connection refused")
			}
			return nil
		}
		s.reserve = func(room string, _ queue.Step) (queue.Reservation, error) {
			if room == "b" {
				return queue.Reservation{Wait: time.Second}, nil // nobody there yet
			}
			return someone(0, 1), nil
		}
		s.run("only")
		s.after(12 * time.Second)
		require.Len(t, s.made("reserve", "a"), 1)
		require.Len(t, s.made("reserve", "b"), 1, "nobody is taken who could not be let through")
		require.Empty(t, s.made("issue", ""))
		for _, room := range []string{"a", "b"} {
			require.GreaterOrEqual(t, len(s.made("reap", room)), 11, "grants and leases keep ending")
		}
		s.change(func() { down = false })
		s.after(time.Second)
		require.Len(t, s.made("issue", "a"), 1, "those taken already are let through")
		s.after(time.Second)
		for _, room := range []string{"a", "b"} {
			require.Greater(t, len(s.made("reserve", room)), 1, "and the ticks go on")
		}
	})
}

func TestLeaderThatCannotWriteProgressMakesRoomForAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		cut := newWorld("a")
		cut.advance = func([]queue.Progress) error { return errors.New("no route to host") }
		s.reserve = always(someone(0, 1))
		s.run("cut-off", func(c *scheduler.Config) { c.Admissions = cut })
		s.after(time.Second)
		s.run("next")
		s.after(25 * time.Second)
		require.NotEmpty(t, s.by("next"))
	})
}

func TestFailingRoomBacksOffAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "good", "bad")
		s.reserve = func(room string, _ queue.Step) (queue.Reservation, error) {
			if room == "bad" {
				return queue.Reservation{}, errors.New("WRONGTYPE")
			}
			return queue.Reservation{Wait: 100 * time.Millisecond}, nil
		}
		s.run("only")
		s.after(60 * time.Second)
		require.InDelta(t, 600, len(s.made("reserve", "good")), 6)
		bad := s.made("reserve", "bad")
		require.Less(t, len(bad), 130)
		for i := 1; i < len(bad); i++ {
			pause := bad[i].at.Sub(bad[i-1].at)
			require.GreaterOrEqual(t, pause, 50*time.Millisecond)
			require.LessOrEqual(t, pause, time.Second, "I24: it is tried again soon, however long it has failed")
		}
		require.GreaterOrEqual(t, bad[10].at.Sub(bad[9].at), 500*time.Millisecond)
	})
}

func TestHungRoomDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "good")
		hung := newWorld("hung")
		hung.delay = time.Hour
		s.lives["hung"] = life("hung")
		s.run("only", func(c *scheduler.Config) { c.Line = split{c.Line, hung} })
		s.after(30 * time.Second)
		require.GreaterOrEqual(t, len(s.made("reserve", "good")), 29)
		hung.change(func() { hung.delay = 0 })
		s.after(3 * time.Second)
		require.NotEmpty(t, hung.made("reserve", "hung"), "a call that never ends is given up, and the room tried again")
	})
}

// A room that asks for nothing in particular is still no hot loop, and one that
// asks for an hour is looked at each second.
func TestSleepIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "hasty", "idle", "steady")
		s.reserve = func(room string, _ queue.Step) (queue.Reservation, error) {
			switch room {
			case "idle":
				return queue.Reservation{Wait: time.Hour}, nil
			case "steady":
				return queue.Reservation{Wait: 250 * time.Millisecond}, nil
			}
			return queue.Reservation{}, nil
		}
		s.run("only")
		s.after(10*time.Second + time.Millisecond)
		require.Len(t, s.made("reserve", "hasty"), 2001)
		require.Len(t, s.made("reserve", "idle"), 11)
		require.Len(t, s.made("reserve", "steady"), 41)
	})
}

func TestLossOfAcknowledgedStateIsCountedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		lost := 0
		mark, last := int64(500), int64(800)
		s.reserve = func(string, queue.Step) (queue.Reservation, error) {
			return queue.Reservation{Wait: time.Second, Watermarks: []int64{mark, 9}, LastScore: last}, nil
		}
		s.run("only", func(c *scheduler.Config) { c.Observer.Lost = func(string) { lost++ } })
		s.after(3 * time.Second)
		require.Zero(t, lost)
		s.change(func() { mark = 400 })
		s.after(3 * time.Second)
		require.Equal(t, 1, lost)
		s.change(func() { last = 700 })
		s.after(3 * time.Second)
		require.Equal(t, 2, lost)
	})
}

// The watermark that an issue makes counts as acknowledged, even if Redis loses
// it before it is ever told.
func TestLossOfAnIssueIsSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		lost := 0
		first := true
		s.reserve = func(string, queue.Step) (queue.Reservation, error) {
			res := someone(0, 600)
			res.Watermarks = []int64{500}
			if !first {
				res.Taken = nil
			}
			first = false
			return res, nil
		}
		s.run("only", func(c *scheduler.Config) { c.Observer.Lost = func(string) { lost++ } })
		s.after(3 * time.Second)
		require.Equal(t, 1, lost)
	})
}

func TestObserverSeesWhatHappened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a")
		s.reserve = always(someone(0, 1))
		var seen []string
		stop := s.run("only", func(c *scheduler.Config) {
			c.Observer = scheduler.Observer{
				Led:    func(term int64, leads bool) { seen = append(seen, line("led", term, leads)) },
				Ticked: func(k scheduler.Tick) { seen = append(seen, line("ticked", k.Room, k.Granted, k.Err)) },
				Issued: func(a scheduler.Admission) {
					seen = append(seen, line("issued", a.Room, a.Candidates[0].Member, a.Decisions[0].Grant, a.Step.Seq, a.Counts))
				},
			}
		})
		s.after(100 * time.Millisecond)
		stop()
		require.Equal(t, []string{"led 1 true", "issued a m1 grant-1 1 {1 0 0}", "ticked a 1 <nil>", "led 1 false"}, seen)
	})
}

func line(words ...any) string { return strings.TrimSpace(fmt.Sprintln(words...)) }
