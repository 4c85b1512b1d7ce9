// Package fault breaks what Linekeeper stands on, on purpose and by plan: calls
// to Redis and Postgres, the network between, the servers, their clocks, and
// the processes of the product itself.
//
//	in one process            between processes         whole processes and servers
//	Hook     a Redis call     Proxy   a connection      Process   of the product
//	Postgres a COMMIT                                   Redis, Database   servers
//	                                                    Clock     a server's wall clock
//
// Every choice is drawn from a Dice, and a Dice comes from a seed: who keeps the
// seed can repeat the choices. A Schedule says when what is broken and for how
// long; the same seed makes the same schedule. What cannot be repeated is the
// moment at which other threads meet a fault. So a seed leads back to the
// neighbourhood of a failure, and the recorded history says what it was.
//
// The faults are those that hurt: an answer that is lost after the work was
// done, work that is done after everybody has given up waiting for it, a process
// that stands still and then goes on as if nothing had been. A connection that
// is refused is the easy case, and is here too.
//
// Nothing in the product knows this package. It has its own tests, because a
// fault that does not happen makes every test that relies on it pass.
package fault
