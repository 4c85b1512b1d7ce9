package main

// failpoints are the edits that every overlaid program has: calls of point.At,
// and the journal.
var failpoints = []edit{
	{
		file: "queue/redisstore/scripts.go",
		old:  "return namedScript{name, redis.NewScript(src + mustRead(name))}",
		new:  "return namedScript{name, redis.NewScript(point.Script(name, src+mustRead(name)))}",
	},
	{
		file: "queue/redisstore/scripts.go",
		old:  `redis.NewScript(mustRead("raise"))`,
		new:  `redis.NewScript(point.Script("raise", mustRead("raise")))`,
	},
	{
		file: "queue/redisstore/member.go",
		old:  "r, err := s.runTogether(ctx, enterScript, room, member, e.Lane, e.Lot.Sale, e.Lot.First, e.Grant, unixMicro(e.Asked))",
		new: `point.At(ctx, "E1-before-enter")
	r, err := s.runTogether(ctx, enterScript, room, member, e.Lane, e.Lot.Sale, e.Lot.First, e.Grant, unixMicro(e.Asked))
	point.At(ctx, "E2-entered")`,
	},
	{
		file: "queue/redisstore/member.go",
		old:  "r, err := s.run(ctx, restoreScript, room, l.Generation, l.Member, l.Ticket, l.Place.Lane, l.Place.Score, l.Floor, lostToken, l.Issued.UnixMicro())",
		new: `point.At(ctx, "E7-before-restore")
	r, err := s.run(ctx, restoreScript, room, l.Generation, l.Member, l.Ticket, l.Place.Lane, l.Place.Score, l.Floor, lostToken, l.Issued.UnixMicro())
	point.At(ctx, "E7-restored")`,
	},
	{
		file: "queue/redisstore/member.go",
		old:  "r, err := s.run(ctx, leaveScript, room, member, at, string(outcome))",
		new: `point.At(ctx, "E11-before-leave")
	r, err := s.run(ctx, leaveScript, room, member, at, string(outcome))
	point.At(ctx, "E11-left")`,
	},
	{
		file: "queue/redisstore/member.go",
		old:  "st, err = s.taken(ctx, room, member)",
		new: `point.At(ctx, "P1-between-reads")
		st, err = s.taken(ctx, room, member)`,
	},
	{
		file: "queue/redisstore/member.go",
		old:  "r, err := s.runTogether(ctx, standingScript, room, member)",
		new: `point.At(ctx, "P1-before-standing")
	r, err := s.runTogether(ctx, standingScript, room, member)
	point.At(ctx, "P1-standing")`,
	},
	{
		file: "queue/redisstore/member.go",
		old:  "_, err := s.run(ctx, heardScript, room, args...)",
		new: `point.At(ctx, "P2-before-heard")
	_, err := s.run(ctx, heardScript, room, args...)
	point.At(ctx, "P2-heard")`,
	},
	{
		file: "queue/redisstore/member.go",
		old:  "r, err := s.runTogether(ctx, pickupScript, g.Room, g.Member, g.ID, keyID)",
		new: `point.At(ctx, "P4-before-pickup")
	r, err := s.runTogether(ctx, pickupScript, g.Room, g.Member, g.ID, keyID)
	point.At(ctx, "P4-picked")`,
	},
	{
		file: "scheduler/tick.go",
		old:  "\t// What older calls of ours left",
		new: `	point.At(ctx, "T5-before-reserve")
	// What older calls of ours left`,
	},
	{
		file: "scheduler/tick.go",
		old: `		return fmt.Errorf("reserve: %w", err)
	}
`,
		new: `		return fmt.Errorf("reserve: %w", err)
	}
	point.At(ctx, "T1-reserved")
`,
	},
	{
		file: "scheduler/tick.go",
		old:  "v.issued, err = t.Line.Issue(ctx, v.life.Room, v.step, v.decisions)",
		new: `point.At(ctx, "T2-before-issue")
		v.issued, err = t.Line.Issue(ctx, v.life.Room, v.step, v.decisions)
		point.At(ctx, "T2-issued")`,
	},
	{
		file: "scheduler/books.go",
		old:  "err := t.Admissions.Advance(ctx, progress(group))",
		new: `point.At(ctx, "T1-before-advance")
		err := t.Admissions.Advance(ctx, progress(group))
		point.At(ctx, "T1-advanced")`,
	},
	{
		file: "scheduler/leadership.go",
		old: `	number, err := s.firstTerm(work)
`,
		new: `	point.At(work, "L1-won")
	number, err := s.firstTerm(work)
	point.At(work, "T6-term")
`,
	},
	{
		file: "scheduler/leadership.go",
		old:  "ok, err := h.lock.ExtendContext(call)",
		new: `point.At(ctx, "T8-before-extend")
	ok, err := h.lock.ExtendContext(call)
	point.At(ctx, "T8-extended")`,
	},
	{
		file: "scheduler/term.go",
		old: `		t.begin(work, wake)
`,
		new: `		point.At(work, "T9-loop")
		t.begin(work, wake)
`,
	},
	{
		file: "order/service.go",
		old:  "err := s.grants.Claim(ctx, r.Grant, claim, r.Lease)",
		new: `point.At(ctx, "O2-before-claim")
	err := s.grants.Claim(ctx, r.Grant, claim, r.Lease)`,
	},
	{
		file: "order/service.go",
		old: `	found, err := s.store.Create(ctx, o)
`,
		new: `	point.At(ctx, "O3-claimed")
	found, err := s.store.Create(ctx, o)
`,
	},
	{
		file: "order/pgstore/create.go",
		old: `	if err := write(ctx, tx, &o); err != nil {
`,
		new: `	point.At(ctx, "O4-begun")
	if err := write(ctx, tx, &o); err != nil {
`,
	},
	{
		file: "order/pgstore/create.go",
		old: `	if err := commit(ctx, tx); err != nil {
`,
		new: `	point.At(ctx, "O9-written")
	if err := commit(ctx, tx); err != nil {
`,
	},
	{
		file: "order/pgstore/creategroup.go",
		old: `	out, err := writeGroup(ctx, tx, group)
	if err != nil || len(out.placed) == 0 {
		rollback(ctx, tx)
		return out, err
	}
`,
		new: `	point.At(ctx, "O4-group-begun")
	out, err := writeGroup(ctx, tx, group)
	if err != nil || len(out.placed) == 0 {
		rollback(ctx, tx)
		return out, err
	}
	point.At(ctx, "O9-group-written")
`,
	},
	{
		file: "order/pgstore/outcome.go",
		old:  "err := tx.Commit(ctx)",
		new: `point.At(ctx, "O7-before-commit")
	err := tx.Commit(ctx)
	point.At(ctx, "O7-committed")`,
	},
	{
		file: "order/service.go",
		old:  "found, err := s.store.Void(ctx, g)",
		new: `point.At(ctx, "O7-before-void")
	found, err := s.store.Void(ctx, g)
	point.At(ctx, "O7-voided")`,
	},
	{
		file: "order/pgstore/pgstore.go",
		old: `				return explain(ctx, conn, o, err)
			}
`,
		new: `				return explain(ctx, conn, o, err)
			}
			point.At(ctx, "O10-before-retry")
`,
	},
	{
		file: "order/service.go",
		old: `	if err := s.grants.Release(ctx, g, claim); err != nil {
`,
		new: `	point.At(ctx, "O13-before-release")
	err := s.grants.Release(ctx, g, claim)
	point.At(ctx, "O13-released")
	if err != nil {
`,
	},
	{
		file: "order/pgstore/pgstore.go",
		old: `	if err == nil && created.ID == o.ID {
`,
		new: `	if err == nil && created.ID == o.ID {
		point.At(ctx, "X1-committed")
`,
	},
	{
		file: "order/pgstore/group.go",
		old: `	if err == nil && len(out.placed) > 0 {
`,
		new: `	if err == nil && len(out.placed) > 0 {
		point.At(ctx, "X1-group-committed")
`,
	},
	{
		file: "outbox/relay.go",
		old:  "\t// Half of the lease is for deliveries",
		new: `	point.At(ctx, "X2-taken")
	// Half of the lease is for deliveries`,
	},
	{
		file: "outbox/relay.go",
		old:  "err := r.send(ctx, batch)",
		new: `point.At(ctx, "X6-before-send")
	err := r.send(ctx, batch)
	point.At(ctx, "X2-consumed")`,
	},
	{
		file: "outbox/relay.go",
		old: `	dead, err := r.fail(ctx, batch, 1, cause)
`,
		new: `	point.At(ctx, "X5-poisoned")
	dead, err := r.fail(ctx, batch, 1, cause)
`,
	},
	{
		file: "outbox/relay.go",
		old: `	more, err := r.prune(ctx)
`,
		new: `	point.At(ctx, "X8-before-prune")
	more, err := r.prune(ctx)
`,
	},
	{
		file: "outbox/rows.go",
		old:  `n, err := r.exec(ctx, "mark events done", markDone, ids(batch), r.owner)`,
		new: `n, err := r.exec(ctx, "mark events done", markDone, ids(batch), r.owner)
	point.At(ctx, "X2-done")`,
	},
	{
		file: "scheduler/reap.go",
		old:  "counts, err := t.Line.Reap(ctx, r.name)",
		new: `point.At(ctx, "W2-before-reap")
		counts, err := t.Line.Reap(ctx, r.name)
		point.At(ctx, "W2-reaped")`,
	},
	{
		file: "scheduler/leadership.go",
		old: `	s.reachable(true, nil)
`,
		new: `	point.At(ctx, "L2-locked")
	s.reachable(true, nil)
`,
	},
	{
		file: "scheduler/leadership.go",
		old:  "ok, err := lock.UnlockContext(call)",
		new: `point.At(ctx, "L1-before-unlock")
	ok, err := lock.UnlockContext(call)
	point.At(ctx, "L1-unlocked")`,
	},
	{
		file: "scheduler/tick.go",
		old: `		if err := t.Rooms.Update(ctx, v.life); err != nil {
`,
		new: `		point.At(ctx, "L4-before-push")
		if err := t.Rooms.Update(ctx, v.life); err != nil {
`,
	},
	{
		file: "scheduler/tick.go",
		old: `		v.known = v.life.Version
`,
		new: `		point.At(ctx, "L4-pushed")
		v.known = v.life.Version
`,
	},
	{
		file: "scheduler/books.go",
		old:  "life, err := t.Books.Begin(ctx, v.life.Room, v.life.Generation)",
		new: `point.At(ctx, "R1-before-begin")
	life, err := t.Books.Begin(ctx, v.life.Room, v.life.Generation)
	point.At(ctx, "R1-won")`,
	},
	{
		file: "scheduler/books.go",
		old: `	v.create, v.begun, v.known = false, true, v.life.Version
`,
		new: `	point.At(ctx, "R1-created")
	v.create, v.begun, v.known = false, true, v.life.Version
`,
	},
	{
		file: "cmd/linekeeper/server.go",
		old: `		s.ready.drain()
`,
		new: `		s.ready.drain()
		point.At(ctx, "H2-draining")
`,
	},
	{
		file: "cmd/linekeeper/server.go",
		old: `	servers.shutdown(min(s.conf.ShutdownDelay/10, reading))
	stop()
`,
		new: `	point.At(ctx, "H2-closing")
	servers.shutdown(min(s.conf.ShutdownDelay/10, reading))
	stop()
`,
	},
	{
		file: "api/orders.go",
		old: `	placed, err := a.Orders.Place(r.Context(), req)
`,
		new: `	placed, err := a.Orders.Place(r.Context(), req)
	point.At(r.Context(), "H3-before-answer")
`,
	},
	{
		file: "api/position.go",
		old: `	return writePosition(w, status, &p)
`,
		new: `	point.At(r.Context(), "H1-before-answer")
	return writePosition(w, status, &p)
`,
	},
}
