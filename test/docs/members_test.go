package docs

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// The first lines of the blocks about operators and members.
const (
	tokenLine   = "# Printed once: the token on standard output; its entry for LINEKEEPER_ADMIN_TOKENS, a hash, on standard error."
	keepOutLine = "linekeeper member get tickets ann"
)

func TestMembersAreKeptOutAsWritten(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run("setup", "--secrets", "secrets")
	in.serve()
	in.run("room", "create", "tickets")
	require.Regexp(t, `(?m)^[A-Za-z0-9_-]{43}$`, in.script(shell(t, "docs/operations.md", tokenLine)))
	said := in.script(shell(t, "docs/operations.md", keepOutLine))
	require.Equal(t, 2, strings.Count(said, "kept out  no"), "%s", said)
	require.Contains(t, said, "of this sale")
	require.Contains(t, said, "for good")
}

// Somebody has ordered, been blocked, and is forgotten: the tables have no trace of
// the name, and the order stays.
func TestAMemberIsForgottenAsWritten(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run("setup", "--secrets", "secrets")
	in.serve()
	const member = "canary-member"
	in.run("member", "block", "default", member, "--confirm", "default")
	ctx := t.Context()
	db, err := pgx.Connect(ctx, in.env["LINEKEEPER_DATABASE_URL"])
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	_, err = db.Exec(ctx, `WITH o AS (
			INSERT INTO orders (id, grant_id, room, sale, generation, member, once)
			VALUES (gen_random_uuid(), gen_random_uuid(), 'default', 1, 1, '`+member+`', true) RETURNING id)
		INSERT INTO outbox (order_id, kind, room, payload, status) SELECT id, 'consume', 'default', '{"member": "`+member+`", "grant": "g"}', 'done' FROM o`)
	require.NoError(t, err)
	_, err = db.Exec(ctx, `WITH c AS (
			INSERT INTO access_codes (room, hash, ending, batch, lane, uses) VALUES ('default', sha256('code'), 'CODE', 1, '', 1) RETURNING id)
		INSERT INTO access_code_uses (code, sale, member) SELECT id, 1, '`+member+`' FROM c`)
	require.NoError(t, err)
	rows := func() (orders, named int) {
		require.NoError(t, db.QueryRow(ctx, `SELECT count(*) FROM orders`).Scan(&orders))
		for _, table := range []string{"orders", "outbox", "room_changes", "room_exclusions", "room_progress", "draws", "draw_pieces", "rooms", "products", "access_codes", "access_code_uses"} {
			var n int
			require.NoError(t, db.QueryRow(ctx, `SELECT count(*) FROM `+table+` x WHERE x::text LIKE '%`+member+`%'`).Scan(&n))
			named += n
		}
		return orders, named
	}
	orders, named := rows()
	require.Equal(t, []int{1, 5}, []int{orders, named})

	sql := block("sql").FindStringSubmatch(read(t, "docs/operations.md"))
	require.Len(t, sql, 2)
	_, err = db.Exec(ctx, strings.ReplaceAll(sql[1], "MEMBER", member))
	require.NoError(t, err)
	orders, named = rows()
	require.Equal(t, []int{1, 0}, []int{orders, named})
	require.Contains(t, in.run("audit", "--target", "default"), "member.block", "what was done stays known")
}
