// Command bench measures what the waiting room costs, against handlers that do
// less.
//
// It starts a Redis, a Postgres (fsync on, synchronous_commit on), the product's
// own binary with all its limits, checks and headers on, and these comparators,
// each a process of its own:
//
//	plain   the product's router and middleware; a handler that returns a body of the same size
//	naive   the same, with package naive behind it: single commands, one after the other
//	bare    the same, with the order transaction and nothing around it: no guard, no event
//
// All that is compared is measured in one run, in short rounds by turns (A B C,
// C B A, ...), and what is printed is the median of the ratios of the rounds: a
// machine that others slow down for some seconds slows down all sides of a round.
// The load generator is in this process, a closed loop over keep-alive
// connections. Each answer's status is checked, and of every sixteenth the body:
// one that is wrong ends the run.
//
// It promises nothing about other machines, and measures neither TLS nor a network.
package main
