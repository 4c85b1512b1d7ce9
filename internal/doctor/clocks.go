package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// How far apart clocks may be. The line runs on the clock of Redis alone, so a
// second only makes logs and waits misleading; a minute is what scripts take
// for a step of the clock, and what makes tickets end at the wrong time.
const (
	clocksApart  = time.Second
	clocksBroken = time.Minute
)

// reading is a clock against that of this host.
type reading struct {
	of    string
	ahead time.Duration // of this host; an answer that took long is that much less exact
}

func clocks(ctx context.Context, e *exam) Finding {
	readings := []reading{{of: "this host"}}
	for _, ask := range []func(context.Context, *exam) ([]reading, error){redisClocks, postgresClock} {
		more, err := ask(ctx, e)
		if err != nil {
			return fail("mend the part that does not tell its time", "a clock can't be read: %s", oneLine(err))
		}
		readings = append(readings, more...)
	}
	if len(readings) == 1 {
		return skipped("not looked at: there is no other clock to compare with")
	}
	first, last := readings[0], readings[0]
	var texts []string
	for _, r := range readings {
		if r.ahead < first.ahead {
			first = r
		}
		if r.ahead > last.ahead {
			last = r
		}
		texts = append(texts, fmt.Sprintf("%s %+.3f s", r.of, r.ahead.Seconds()))
	}
	return judged(last.ahead-first.ahead, first.of+" and "+last.of, strings.Join(texts, ", "))
}

func judged(apart time.Duration, whose, all string) Finding {
	do := "let one time service (NTP) set the clocks of " + whose
	switch {
	case apart >= clocksBroken:
		return fail(do, "%v apart: %s", apart.Round(time.Millisecond), all)
	case apart >= clocksApart:
		return warn(do, "%v apart: %s", apart.Round(time.Millisecond), all)
	}
	return good("%v apart: %s", apart.Round(time.Millisecond), all)
}

// against compares an answer with the middle of the time that it took.
func (e *exam) against(of string, ask func() (time.Time, error)) (reading, error) {
	sent := e.Now()
	told, err := ask()
	took := e.Now().Sub(sent)
	return reading{of, told.Sub(sent.Add(took / 2))}, err
}

func redisClocks(ctx context.Context, e *exam) ([]reading, error) {
	if e.redisErr != nil {
		return nil, nil
	}
	var out []reading
	err := eachMaster(ctx, e.Redis, func(ctx context.Context, c redis.Cmdable, addr string) error {
		r, err := e.against(addr, func() (time.Time, error) { return c.Time(ctx).Result() })
		out = append(out, r)
		return err
	})
	return out, err
}

func postgresClock(ctx context.Context, e *exam) ([]reading, error) {
	if e.pgErr != nil {
		return nil, nil
	}
	r, err := e.against("postgres", func() (t time.Time, err error) {
		err = e.Postgres.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&t)
		return t, err
	})
	return []reading{r}, err
}
