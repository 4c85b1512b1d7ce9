// Package scheduler lets people through: it takes members out of their lanes
// as fast as each room's rate allows, and turns them into grants.
//
// # Promises
//
// One process leads at a time, and which one does not matter for correctness:
// leading only saves work. Every call names a step (generation, term, leader,
// seq), and a room refuses steps that a newer one has overtaken, so two leaders
// after a long pause, or ten schedulers without a lock, let no more through
// than one. A leader that dies is replaced within the lock's TTL + 1 s, one
// that is told to stop within 2 s. Nobody is granted anything before Postgres
// knows how far the room has got; while it can't be told, nobody is taken.
//
// # A tick
//
//	 due            reserve              advance               barred, issue
//	room ---> members in processing ---> progress in ---> grants, or refusals
//	  ^                                   Postgres               |
//	  |      nobody to take: sleep as long as the room says      | more: at once
//	  +----------------------------------------------------------+
//
// Ticks of many rooms overlap. Those that have taken somebody by the time the
// last write to Postgres is done share the next one. Beside the ticks, and
// whatever becomes of them, each room is reaped at least once a second.
//
// # Batches that follow the database
//
// Beside the ticks of an adaptive room run the rounds of its controller (package
// controller). A round reads the room's counts, and keeps in Redis what follows
// from them, fenced like a step; the next tick works with it. A tick that does
// not know where the room stands asks first, so a new leader goes on where the
// one before has stopped, and after an outage one is let through.
//
// # Leading
//
//	candidate --TryLock--> leads a term --extended every TTL/3--> leads on
//	    ^                       |
//	    +-------- unlock <------+  an extend that failed or came late, trust in
//	                               the lock run out, or no effect for 5 s
//
// A term's loop is one goroutine, which owns all that the term knows; calls run
// beside it and hand back what to do with their answers.
//
// # Not here
//
// No rate is computed and no expiry judged in this package: both are done in
// Redis, by its clock. The process's own clock only says when to ask again.
package scheduler
