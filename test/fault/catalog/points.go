package catalog

const (
	member      = "queue/redisstore/member.go"
	tick        = "scheduler/tick.go"
	books       = "scheduler/books.go"
	leadership  = "scheduler/leadership.go"
	service     = "order/service.go"
	create      = "order/pgstore/create.go"
	outcome     = "order/pgstore/outcome.go"
	pgstore     = "order/pgstore/pgstore.go"
	group       = "order/pgstore/group.go"
	creategroup = "order/pgstore/creategroup.go"
	relay       = "outbox/relay.go"
	server      = "cmd/linekeeper/server.go"
)

// Points are all failpoints, in the order in which somebody in line meets them.
var Points = []Point{
	{"E1-before-enter", "somebody asks for a place; Redis has not been asked", member},
	{"E2-entered", "the place is made, or refused; the answer is not used", member},
	{"E7-before-restore", "a lost place may be given back; Redis has not been asked", member},
	{"E7-restored", "the lost place is back, or refused; the answer is not used", member},
	{"E11-before-leave", "somebody wants to leave; Redis has not been asked", member},
	{"E11-left", "the place is given up, or was not there; the answer is not used", member},

	{"P1-between-reads", "a poll has not found the member in the lane, and not looked further", member},
	{"P1-before-standing", "a poll needs the script; it has not been sent", member},
	{"P1-standing", "the standing script has run; the answer is not used", member},
	{"P2-before-heard", "heartbeats are gathered and not sent; they are lost with the process", member},
	{"P2-heard", "heartbeats are written; the answer is not used", member},
	{"P4-before-pickup", "a grant is found and not picked up", member},
	{"P4-picked", "the expiry is fixed; the entry token is not signed", member},

	{"T5-before-reserve", "a tick has its step; nobody is taken", tick},
	{"T1-reserved", "members are processing; their progress is not in Postgres", tick},
	{"T1-before-advance", "the progress of a round is about to be written", books},
	{"T1-advanced", "Postgres knows the progress; no grant is issued", books},
	{"T2-before-issue", "grants have their ids; none is issued", tick},
	{"T2-issued", "grants are issued; the leader does not know it", tick},
	{"T6-term", "a new leader has its term; no room has seen it", leadership},
	{"T8-before-extend", "the lock is about to be extended", leadership},
	{"T8-extended", "the lock has been extended, or not; the answer is not used", leadership},
	{"T9-loop", "the leader's loop is between two things to do: held here, it ticks nothing, with the lock in hand", "scheduler/term.go"},

	{"O2-before-claim", "an order attempt has its name; nothing is claimed", service},
	{"O3-claimed", "the grant is claimed; no transaction has begun", service},
	{"O4-begun", "the transaction has begun; nothing is written", create},
	{"O9-written", "all statements are answered; the client may still call it off", create},
	{"O4-group-begun", "the transaction of a group has begun; nothing is written", creategroup},
	{"O9-group-written", "all statements of a group are answered; nobody can call it off any more", creategroup},
	{"O7-before-commit", "nobody can call it off any more; COMMIT is not sent", outcome},
	{"O7-committed", "COMMIT has an answer, or has lost it; nobody has used it", outcome},
	{"O10-before-retry", "the transaction has been aborted by a conflict and is about to run again", pgstore},
	{"O7-before-void", "no order was found for a grant that is gone; the void row is not written", service},
	{"O7-voided", "the void row has been written, or has met an order; the answer is not used", service},
	{"O13-before-release", "the attempt has failed for certain; its claim is not released", service},
	{"O13-released", "the claim is released; the answer is not used", service},

	{"X1-committed", "the order is there for ever; the relay is not told", pgstore},
	{"X1-group-committed", "the orders of a group are there for ever; the relay is not told", group},
	{"X2-taken", "the relay has leased rows; none is delivered", relay},
	{"X6-before-send", "a delivery is about to be made, however much of the lease is left", relay},
	{"X2-consumed", "the delivery has ended; what became of it is not written down", relay},
	{"X2-done", "the rows are done; the relay does not know it", "outbox/rows.go"},
	{"X5-poisoned", "one row has failed by its own fault; that is not counted", relay},
	{"X8-before-prune", "old rows are about to be deleted", relay},

	{"W2-before-reap", "a room is due for reaping; the script has not been sent", "scheduler/reap.go"},
	{"W2-reaped", "time's decisions are carried out; the answer is not used", "scheduler/reap.go"},

	{"L2-locked", "the lock is ours; whether it still is when the answer is used, is to be found out", leadership},
	{"L1-won", "the lock is won; the leader has no term", leadership},
	{"L1-before-unlock", "the lock is about to be given back", leadership},
	{"L1-unlocked", "the lock has been given back, or not; the answer is not used", leadership},
	{"L4-before-push", "a room's settings differ from those in Redis; they are not pushed", tick},
	{"L4-pushed", "the settings are in force; the leader does not know it", tick},

	{"R1-before-begin", "a room's data are found to be lost; no generation is won", books},
	{"R1-won", "the next generation is won in Postgres, or not; Redis does not know it", books},
	{"R1-created", "the generation has begun in Redis; the leader does not know it", books},

	{"H1-before-answer", "a position is complete, with a token if there is a grant; it is not written", "api/position.go"},
	{"H3-before-answer", "an order attempt is over, one way or the other; the client has no answer", "api/orders.go"},
	{"H2-draining", "the process is no longer ready; it leads and listens still", server},
	{"H2-closing", "the delay is over; the listeners are still open", server},
}
