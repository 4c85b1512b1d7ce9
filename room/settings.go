package room

import (
	"slices"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Settings is everything that operators decide about a room. The table in
// fields.go has each setting's range; a setting missing from a document has
// its default.
type Settings struct {
	BatchSize                int               `json:"batchSize"`                // let through per interval
	IntervalMs               int               `json:"intervalMs"`               //
	EntryTokenTTLSeconds     int               `json:"entryTokenTtlSeconds"`     // from pick-up on
	PickupTTLSeconds         int               `json:"pickupTtlSeconds"`         // to fetch a grant, before the member goes AWAY
	ClaimLeaseSeconds        int               `json:"claimLeaseSeconds"`        // of one order attempt
	Capacity                 int               `json:"capacity"`                 // inside at once; 0: no limit
	MaxInFlightOrders        int               `json:"maxInFlightOrders"`        // claims at once; 0: no limit
	MaxWaiting               int               `json:"maxWaiting"`               // in lanes, processing and away
	AwayAfterSeconds         int               `json:"awayAfterSeconds"`         // silence near the front
	ForgetAfterSeconds       int               `json:"forgetAfterSeconds"`       // AWAY until the place is gone; also how long lost places come back
	ProcessingTimeoutSeconds int               `json:"processingTimeoutSeconds"` // taken but not granted, until back at the old place
	DoneTTLSeconds           int               `json:"doneTtlSeconds"`           // an outcome is remembered
	SettleSeconds            int               `json:"settleSeconds"`            // after a loss: places come back, nobody is taken
	Lanes                    []Lane            `json:"lanes"`                    // in the order of their index in Redis
	Priority                 string            `json:"priority"`                 // how lanes share a batch
	MaxWaitSeconds           int               `json:"maxWaitSeconds"`           // longest wait promised; 0: none
	TimeZone                 string            `json:"timeZone"`                 // IANA name of the zone whose days count
	Adaptive                 bool              `json:"adaptive"`                 // the batch follows response times
	DirectAdmission          bool              `json:"directAdmission"`          // who enters while nobody waits is let through at once
	Eager                    bool              `json:"eager"`                    // a place that comes free goes to the next at once
	Stock                    *string           `json:"stock"`                    // sku whose stock bounds who is let in; nil: none
	Overbook                 float64           `json:"overbook"`                 // times that stock are let in; in thousandths
	OpensAt                  *time.Time        `json:"opensAt"`                  // people enter; nil: always
	AdmitsAt                 *time.Time        `json:"admitsAt"`                 // people are let through; nil: from opensAt on
	ClosesAt                 *time.Time        `json:"closesAt"`                 // neither; nil: never
	Draw                     bool              `json:"draw"`                     // places by lot among those there before admitsAt
	Paused                   bool              `json:"paused"`                   // people enter, nobody is let through
	Draining                 bool              `json:"draining"`                 // nobody enters, those in line are served
	Off                      bool              `json:"off"`                      // everybody passes, unless paused or draining
	OneOrderPerMember        bool              `json:"oneOrderPerMember"`        // per sale
	EnterNeedsTicket         bool              `json:"enterNeedsTicket"`         // the first enter hands out a ticket and writes nothing
	InvitedOnly              bool              `json:"invitedOnly"`              // to enter takes a claim to a lane, or an access code
	ProofOfWorkBits          int               `json:"proofOfWorkBits"`          // that a newcomer must show; 0: none
	ProofOfWorkMaxBits       int               `json:"proofOfWorkMaxBits"`       // while many come; 0: never more
	ProofOfWorkRate          int               `json:"proofOfWorkRate"`          // newcomers per second that are not many
	OutsideChallenge         bool              `json:"outsideChallenge"`         // a newcomer must have passed one
	Fail                     string            `json:"fail"`                     // closed, or open: people pass while Redis is out of reach
	FailOpenAfterSeconds     int               `json:"failOpenAfterSeconds"`     // of being out of reach, without a break
	Binding                  string            `json:"binding"`                  // of tickets and tokens to the network they are given in
	ReturnURLs               []string          `json:"returnUrls"`               // where the waiting page may send people
	Message                  map[string]string `json:"message"`                  // language tag -> what members read
}

// Lane is a line inside a room.
type Lane struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"` // share of a batch, relative to the other lanes
	// BoostSeconds is by how much earlier its members stand, where priority is boost.
	BoostSeconds int `json:"boostSeconds,omitempty"`
}

// Defaults are the settings of a room nobody has decided anything about. Each
// call gives a copy of its own.
func Defaults() Settings {
	return Settings{
		BatchSize: 50, IntervalMs: 1000,
		EntryTokenTTLSeconds: 300, PickupTTLSeconds: 30, ClaimLeaseSeconds: 15,
		MaxWaiting:       100_000,
		AwayAfterSeconds: 120, ForgetAfterSeconds: 1800,
		ProcessingTimeoutSeconds: 5, DoneTTLSeconds: 3600, SettleSeconds: 40,
		Lanes: []Lane{{Name: "standard", Weight: 1}}, Priority: "ratio", TimeZone: "UTC", Overbook: 1,
		ProofOfWorkRate: 100,
		Fail:            "closed", FailOpenAfterSeconds: 30, Binding: BindingOff,
		ReturnURLs: []string{}, Message: map[string]string{},
	}
}

// Parse reads settings that somebody wrote: what is missing or null has its
// default, what is unknown or out of range is refused. The error is ErrJSON or
// Problems.
func Parse(json []byte) (Settings, error) { return MergePatch(Defaults(), json) }

// Stored reads settings that some version of this program wrote. It passes
// over settings it does not know and does not judge values, so that an older
// process goes on running rooms that a newer one has written.
func Stored(json []byte) (Settings, error) {
	doc, err := DecodeObject(json)
	if err != nil {
		return Settings{}, err
	}
	s := Defaults()
	if wrong := s.merge(doc); len(wrong) > 0 {
		return Settings{}, wrong
	}
	return s, nil
}

// MergePatch applies an RFC 7396 merge patch: null gives a setting its default
// back, message is merged language by language, lists are replaced. The result
// is valid as a whole, or the error (ErrJSON or Problems) has everything wrong
// with it and cur is returned. cur itself is never written to.
func MergePatch(cur Settings, patch []byte) (Settings, error) {
	doc, err := DecodeObject(patch)
	if err != nil {
		return cur, err
	}
	next, wrong := mergeDocument(cur, doc)
	return next, wrong.err()
}

func mergeDocument(cur Settings, doc map[string]any) (Settings, Problems) {
	next := cur
	wrong := next.merge(doc)
	wrong = append(wrong, next.problems()...)
	wrong = append(wrong, unknown(doc, "setting", fieldNames()...)...)
	if len(wrong) > 0 {
		return cur, wrong
	}
	return next, nil
}

// Validate returns everything that keeps the settings from being run, as
// Problems, or nil.
func (s Settings) Validate() error { return s.problems().err() }

// merge takes over what the document says. A field that can't be read keeps
// its value.
func (s *Settings) merge(doc map[string]any) Problems {
	var wrong Problems
	for _, f := range fields {
		if v, given := doc[f.name]; given {
			wrong = append(wrong, f.merge(s, v)...)
		}
	}
	return wrong
}

func (s Settings) problems() Problems {
	var wrong Problems
	for _, f := range fields {
		wrong = append(wrong, f.check(s)...)
	}
	for _, p := range slices.Concat(s.together(), s.lots()) {
		if !wrong.about(p.Field) {
			wrong = append(wrong, p)
		}
	}
	return wrong
}

// Rules is the part of the settings that the scripts obey.
func (s Settings) Rules() queue.Rules {
	weights, boosts := make([]int, len(s.Lanes)), []time.Duration(nil)
	for i, lane := range s.Lanes {
		weights[i] = lane.Weight
		if s.Priority == "boost" {
			boosts = append(boosts, seconds(lane.BoostSeconds))
		}
	}
	stock, overbook := s.bound()
	return queue.Rules{
		Batch:             s.BatchSize,
		Interval:          time.Duration(s.IntervalMs) * time.Millisecond,
		TokenTTL:          seconds(s.EntryTokenTTLSeconds),
		PickupTTL:         seconds(s.PickupTTLSeconds),
		ClaimLease:        seconds(s.ClaimLeaseSeconds),
		ProcessingTimeout: seconds(s.ProcessingTimeoutSeconds),
		AwayAfter:         seconds(s.AwayAfterSeconds),
		ForgetAfter:       seconds(s.ForgetAfterSeconds),
		DoneTTL:           seconds(s.DoneTTLSeconds),
		Settle:            seconds(s.SettleSeconds),
		Capacity:          s.Capacity,
		MaxInFlight:       s.MaxInFlightOrders,
		MaxWaiting:        s.MaxWaiting,
		Weights:           weights,
		OneLine:           s.Priority != "ratio",
		Boosts:            boosts,
		MaxWait:           seconds(s.MaxWaitSeconds),
		Zone:              zone(s.TimeZone),
		OpensAt:           orZero(s.OpensAt),
		AdmitsAt:          orZero(s.AdmitsAt),
		ClosesAt:          orZero(s.ClosesAt),
		Paused:            s.Paused,
		Draining:          s.Draining,
		OneOrder:          s.OneOrderPerMember,
		Stock:             stock,
		Overbook:          overbook,
		Adaptive:          s.Adaptive,
		Draw:              s.Draw,
		Lottery:           s.Priority == lottery && !s.Draw,
		Off:               s.Off,
		Direct:            s.DirectAdmission,
		Eager:             s.Eager,
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
