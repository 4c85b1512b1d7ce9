// Package bots shows what the defences against a flood are worth: how many of the
// first places of a sale go to bots that come beside a thousand people, with each
// defence off and on.
//
// The room is real (Redis, Postgres, the HTTP API) and takes nobody out of the
// line. Time is not: people and bots are events on a clock that Redis shows, so
// that a slow phone costs no time, and a farm of machines none either. Puzzles are
// solved for real with 2^10 times fewer hashes than the actors are charged for.
//
//	make bots    writes docs/bots.md again
package bots
