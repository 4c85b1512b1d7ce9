// Package history records what happens to a room and judges it by the promises
// I1 to I20 of docs/architecture.md.
//
// # What is recorded
//
//	clients  --Recorder-->  events: every call's beginning, and how it ended
//	Redis    --Collector->  the journal: every step of a script, written by Redis
//	                        in the same moment, with the state that it left
//	both, at the end -ReadFinal-> what Redis and Postgres hold
//	the run itself ------->  facts: what it broke, and when
//
// The journal is there only in builds with the tag faults. An event says what
// somebody was told, the journal what was true; a promise is checked against
// both where it speaks of both.
//
// # What is promised
//
// Check never relies on two clocks being one. Steps are in the order of the
// journal; events are in the order of one clock, Now; and what joins them is
// that the Collector read a step between two times of that clock. Redis time
// is used for what is promised in Redis time: rates, deadlines, expiries.
//
// One call is one request. A client that repeats by itself, as net/http does where
// there is an Idempotency-Key, hides which of the two had the effect: let it not.
//
// A call whose outcome nobody knows stays open for ever: it may have its effect
// at any time after it began. So Check does not accuse where a late effect
// explains what was seen.
//
// After a loss of Redis data the promises of tier B hold within each life of
// the journal, and what may differ across the loss is listed as a Deviation,
// not passed over. Those of tier A hold whatever is lost.
//
// Every check has a history that it refuses in its test, and a neighbour of
// that history which passes. A checker that has never failed is no evidence.
//
// # Not here
//
// I21 to I24 are not about one history: they are about clocks that are moved
// (run the checks on such a history), about what is left after the load, and
// about how long things take. The runs show them.
package history
