package main

// mutants are the edits that do nothing until their mutant is alive. Those in
// Lua are in package point: scripts are changed when a program starts.
var mutants = []edit{
	// app-clock-score: the script takes one argument more, for the score.
	{
		file: "queue/redisstore/member.go",
		old:  "r, err := s.runTogether(ctx, enterScript, room, member, e.Lane, e.Lot.Sale, e.Lot.First, e.Grant, unixMicro(e.Asked))",
		new: `args := []any{member, e.Lane, e.Lot.Sale, e.Lot.First, e.Grant, unixMicro(e.Asked)}
	if point.Mutant("app-clock-score") {
		args = append(args, point.AppClock(ctx, s.clock()))
	}
	r, err := s.runTogether(ctx, enterScript, room, args...)`,
	},

	// straight-in-twice: what the ticket says of its place is passed over.
	{
		file: "api/enter.go",
		old:  "if c.ticket.Granted && !lost.LostToken {",
		new:  `if c.ticket.Granted && !lost.LostToken && !point.Mutant("straight-in-twice") {`,
	},
	// straight-in-past-who-waits: the process does not look either.
	{
		file: "api/gate.go",
		old:  "if v.Waiting()+v.Processing > 0 || v.Draw.Undecided() {",
		new:  `if v.Waiting()+v.Processing > 0 && !point.Mutant("straight-in-past-who-waits") {`,
	},

	// id-cursor-outbox: what is done is the cursor.
	{
		file: "outbox/rows.go",
		old:  "const takeDue = `",
		new:  "var takeDue = `",
	},
	{
		file: "outbox/rows.go",
		old:  "WHERE status = 'pending' AND next_attempt_at <= now()",
		new: "WHERE ` + point.Either(\"id-cursor-outbox\", \"id > (SELECT coalesce(max(id), 0) FROM outbox WHERE status = 'done') AND \", \"\") +\n" +
			"	`status = 'pending' AND next_attempt_at <= now()",
	},

	// release-on-unknown.
	{
		file: "order/service.go",
		old: `	case errors.Is(err, ErrOutcomeUnknown):
`,
		new: `	case errors.Is(err, ErrOutcomeUnknown):
		if point.Mutant("release-on-unknown") {
			s.release(ctx, r.Grant, o.ID)
		}
`,
	},

	// gone-without-void.
	{
		file: "order/service.go",
		old: `	point.At(ctx, "O7-before-void")
`,
		new: `	point.At(ctx, "O7-before-void")
	if point.Mutant("gone-without-void") {
		return Order{}, ErrTokenInvalid
	}
`,
	},

	// commit-tag-ignored.
	{
		file: "order/pgstore/outcome.go",
		old: `	point.At(ctx, "O7-committed")
`,
		new: `	point.At(ctx, "O7-committed")
	if point.Mutant("commit-tag-ignored") && errors.Is(err, pgx.ErrTxCommitRollback) {
		err = nil
	}
`,
	},

	// no-unique-grant: the constraint goes when the program starts, and a void row
	// is kept apart by looking first.
	{
		file: "order/pgstore/pgstore.go",
		old: `	return &Store{pool: pool, opts: opts, groups: newGroups(cmp.Or(opts.Group, 64))}
`,
		new: `	if point.Mutant("no-unique-grant") {
		// Of several processes the first to come does it.
		_, _ = pool.Exec(context.Background(), "DO $$ BEGIN IF EXISTS (SELECT FROM pg_constraint WHERE conname = 'orders_grant')"+
			" THEN ALTER TABLE orders DROP CONSTRAINT orders_grant; END IF; END $$")
	}
	return &Store{pool: pool, opts: opts, groups: newGroups(cmp.Or(opts.Group, 64))}
`,
	},
	{
		file: "order/pgstore/pgstore.go",
		old:  "const insertVoid = `",
		new:  "var insertVoid = `",
	},
	{
		file: "order/pgstore/pgstore.go",
		old: `
VALUES ($1, $2, true, $3, $4, $5, $6)
ON CONFLICT ON CONSTRAINT orders_grant DO NOTHING` + "`",
		new: "` + point.Either(\"no-unique-grant\",\n" +
			"	`SELECT $1::uuid, $2::uuid, true, $3, $4::bigint, $5::bigint, $6 WHERE NOT EXISTS (SELECT FROM orders WHERE grant_id = $2::uuid)`,\n" +
			"	`VALUES ($1, $2, true, $3, $4, $5, $6)\nON CONFLICT ON CONSTRAINT orders_grant DO NOTHING`)",
	},

	// group-answers-first: what became of the first of a group is told to all.
	{
		file: "order/pgstore/group.go",
		old: `		created, written := out.placed[a]
`,
		new: `		created, written := out.placed[a]
		if err == nil && point.Mutant("group-answers-first") {
			if _, first := out.placed[group[0]]; !first {
				written, out.short[a] = false, out.short[group[0]]
			} else if !written {
				created, written = a.order, true
			}
		}
`,
	},

	// event-after-commit: the event is left out of the batch, and follows.
	{
		file: "order/pgstore/create.go",
		old: `	outbox.Queue(batch, event)
`,
		new: `	if !point.Mutant("event-after-commit") {
		outbox.Queue(batch, event)
	}
`,
	},
	{
		file: "order/pgstore/create.go",
		old: `	if _, err := results.Exec(); err != nil {
`,
		new: `	if point.Mutant("event-after-commit") {
		// Nothing of it is in the batch.
	} else if _, err := results.Exec(); err != nil {
`,
	},
	{
		file: "order/pgstore/create.go",
		old: `	return o, nil
}
`,
		new: `	if point.Mutant("event-after-commit") {
		return o, appendLate(ctx, conn, o)
	}
	return o, nil
}

// appendLate is the mutant event-after-commit's: in a transaction of its own.
func appendLate(ctx context.Context, conn *pgx.Conn, o order.Order) error {
	event, err := outbox.NewConsume(o.ID, o.Room, outbox.Consume{Member: o.Member, Grant: o.Grant})
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return outbox.Append(ctx, tx, event) })
}
`,
	},
}
