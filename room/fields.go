package room

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// field is one setting: its name in JSON, how a value of a document is taken
// over, and which values are right.
type field struct {
	name  string
	merge func(s *Settings, v any) Problems
	check func(s Settings) Problems
}

// fields is the one list of the settings and their ranges, in the order in
// which problems are told. The ranges, where the reason does not show:
//
//   - pickupTtlSeconds: a third of it is the longest poll interval near the
//     front, and polls every 3 s are what that can bear.
//   - claimLeaseSeconds: above the 10 s after which Postgres ends an idle
//     transaction, so that no order attempt outlives its lease unnoticed.
//   - awayAfterSeconds: three times the longest poll interval of 30 s, so that
//     two lost polls make nobody silent.
//   - doneTtlSeconds: a member who comes back within a minute is told why.
var fields = []field{
	whole("batchSize", 1, 10_000, func(s *Settings) *int { return &s.BatchSize }),
	whole("intervalMs", 100, 60_000, func(s *Settings) *int { return &s.IntervalMs }),
	whole("entryTokenTtlSeconds", 15, 86_400, func(s *Settings) *int { return &s.EntryTokenTTLSeconds }),
	whole("pickupTtlSeconds", 10, 3600, func(s *Settings) *int { return &s.PickupTTLSeconds }),
	whole("claimLeaseSeconds", 11, 300, func(s *Settings) *int { return &s.ClaimLeaseSeconds }),
	whole("capacity", 0, 10_000_000, func(s *Settings) *int { return &s.Capacity }),
	whole("maxInFlightOrders", 0, 100_000, func(s *Settings) *int { return &s.MaxInFlightOrders }),
	whole("maxWaiting", 1, 10_000_000, func(s *Settings) *int { return &s.MaxWaiting }),
	whole("awayAfterSeconds", 90, 86_400, func(s *Settings) *int { return &s.AwayAfterSeconds }),
	whole("forgetAfterSeconds", 60, 604_800, func(s *Settings) *int { return &s.ForgetAfterSeconds }),
	whole("processingTimeoutSeconds", 1, 60, func(s *Settings) *int { return &s.ProcessingTimeoutSeconds }),
	whole("doneTtlSeconds", 60, 604_800, func(s *Settings) *int { return &s.DoneTTLSeconds }),
	whole("settleSeconds", 0, 600, func(s *Settings) *int { return &s.SettleSeconds }),
	of("lanes", func(s *Settings) *[]Lane { return &s.Lanes }, readLanes, checkLanes),
	word("priority", []string{"ratio", "boost", "lottery"}, func(s *Settings) *string { return &s.Priority }),
	whole("maxWaitSeconds", 0, 86_400, func(s *Settings) *int { return &s.MaxWaitSeconds }),
	of("timeZone", func(s *Settings) *string { return &s.TimeZone }, readZone, checkZone),
	flag("adaptive", func(s *Settings) *bool { return &s.Adaptive }),
	flag("directAdmission", func(s *Settings) *bool { return &s.DirectAdmission }),
	flag("eager", func(s *Settings) *bool { return &s.Eager }),
	of("stock", func(s *Settings) **string { return &s.Stock }, readStock, checkStock),
	of("overbook", func(s *Settings) *float64 { return &s.Overbook }, readOverbook, checkOverbook),
	moment("opensAt", func(s *Settings) **time.Time { return &s.OpensAt }),
	moment("admitsAt", func(s *Settings) **time.Time { return &s.AdmitsAt }),
	moment("closesAt", func(s *Settings) **time.Time { return &s.ClosesAt }),
	flag("draw", func(s *Settings) *bool { return &s.Draw }),
	flag("paused", func(s *Settings) *bool { return &s.Paused }),
	flag("draining", func(s *Settings) *bool { return &s.Draining }),
	flag("off", func(s *Settings) *bool { return &s.Off }),
	flag("oneOrderPerMember", func(s *Settings) *bool { return &s.OneOrderPerMember }),
	flag("enterNeedsTicket", func(s *Settings) *bool { return &s.EnterNeedsTicket }),
	flag("invitedOnly", func(s *Settings) *bool { return &s.InvitedOnly }),
	whole("proofOfWorkBits", 0, maxWorkBits, func(s *Settings) *int { return &s.ProofOfWorkBits }),
	whole("proofOfWorkMaxBits", 0, maxWorkBits, func(s *Settings) *int { return &s.ProofOfWorkMaxBits }),
	whole("proofOfWorkRate", 1, 100_000, func(s *Settings) *int { return &s.ProofOfWorkRate }),
	flag("outsideChallenge", func(s *Settings) *bool { return &s.OutsideChallenge }),
	word("fail", []string{"closed", "open"}, func(s *Settings) *string { return &s.Fail }),
	whole("failOpenAfterSeconds", 1, 3600, func(s *Settings) *int { return &s.FailOpenAfterSeconds }),
	word("binding", []string{BindingOff, BindingObserve, BindingStrict}, func(s *Settings) *string { return &s.Binding }),
	of("returnUrls", func(s *Settings) *[]string { return &s.ReturnURLs }, readURLs, checkURLs),
	of("message", func(s *Settings) *map[string]string { return &s.Message }, readMessage, checkMessage),
}

func fieldNames() []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// of makes a field of any type. read gets the value in force for what is merged
// rather than replaced, and must not write to it.
func of[T any](name string, at func(*Settings) *T, read func(v any, cur T) (T, Problems), check func(T) Problems) field {
	merge := func(s *Settings, v any) Problems {
		if v == nil {
			d := Defaults()
			*at(s) = *at(&d)
			return nil
		}
		next, wrong := read(v, *at(s))
		if len(wrong) == 0 {
			*at(s) = next
		}
		return wrong.under(name)
	}
	return field{name, merge, func(s Settings) Problems { return check(*at(&s)).under(name) }}
}

// whole says the same about a wrong type and a wrong size: whoever reads it
// learns in one go what is right.
func whole(name string, low, high int, at func(*Settings) *int) field {
	read := func(v any, _ int) (int, Problems) {
		n, ok := wholeNumber(v)
		if !ok || n < low || n > high {
			return 0, notWhole(low, high, v)
		}
		return n, nil
	}
	check := func(n int) Problems {
		if n < low || n > high {
			return notWhole(low, high, n)
		}
		return nil
	}
	return of(name, at, read, check)
}

func notWhole(low, high int, v any) Problems {
	return problem("must be a whole number from %d to %d, got %s", low, high, got(v))
}

// plainNumber leaves out exponents, fractions and -0: what is written is what
// is meant.
var plainNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

func wholeNumber(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok || !plainNumber.MatchString(n.String()) {
		return 0, false
	}
	whole, err := strconv.Atoi(n.String())
	return whole, err == nil
}

func flag(name string, at func(*Settings) *bool) field {
	read := func(v any, _ bool) (bool, Problems) {
		if b, ok := v.(bool); ok {
			return b, nil
		}
		return false, problem("must be true or false, got %s", got(v))
	}
	return of(name, at, read, func(bool) Problems { return nil })
}

// word is one of a few texts.
func word(name string, words []string, at func(*Settings) *string) field {
	check := func(s string) Problems {
		if !slices.Contains(words, s) {
			return problem("must be one of %q, got %s", words, got(s))
		}
		return nil
	}
	read := func(v any, _ string) (string, Problems) {
		s, ok := v.(string)
		if !ok {
			return "", problem("must be one of %q, got %s", words, got(v))
		}
		return s, check(s)
	}
	return of(name, at, read, check)
}

// Times before 2000 are mistakes, and the zero time would mean "no limit";
// scores are good until 2255.
var earliest, latest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// moment is a time, or null for none.
func moment(name string, at func(*Settings) **time.Time) field {
	const rule = "must be an RFC 3339 time from 2000 to 2199 such as 2030-01-31T18:00:00Z, got %s"
	check := func(t *time.Time) Problems {
		if t != nil && (t.Before(earliest) || !t.Before(latest)) {
			return problem(rule, t.Format(time.RFC3339))
		}
		return nil
	}
	read := func(v any, _ *time.Time) (*time.Time, Problems) {
		var t time.Time
		s, ok := v.(string)
		// UnmarshalText is stricter than time.Parse, which takes one-digit hours.
		if !ok || t.UnmarshalText([]byte(s)) != nil {
			return nil, problem(rule, got(v))
		}
		t = t.UTC() // one form in storage, whatever zone the operator writes in
		return &t, check(&t)
	}
	return of(name, at, read, check)
}
