// Package ratelimit tells whether somebody may do something once more, by one
// of four algorithms behind one Allow.
//
//	algorithm  N/P promises                                  right after a pause
//	fixed      at most N in each stretch of P of the clock   N, and N more where two stretches meet
//	sliding    at most N in any P, wherever it begins        N
//	token      at most N + w x N/P in any time w             N, then one each P/N
//	leaky      two never closer than P/N                     1
//
// All four are one script each, on the time of Redis, so any number of
// processes share one count and no process's clock matters. What is refused
// costs nothing: whoever comes again too early does not wait longer for it. A
// key is forgotten once nothing of it counts any more.
//
// Local is the token bucket of one process, for what may cost no call.
//
// # Which one
//
// sliding is the one to take for "N a minute": it means what people read. It
// keeps a number for each that was let through, so N is bounded. fixed is the
// cheapest, and lets twice as many through where two stretches meet. token is
// for people, who come in bursts; leaky for what a server behind is to get
// evenly.
//
// # Unknown outcomes
//
// The driver sends a call again whose answer was lost, and then it may count
// twice: the limit is never passed for that, but somebody may be refused one
// too early. Where Redis can't be asked Allow returns an error and decides
// nothing: what that means is the caller's to say.
package ratelimit
