package cli_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/cli"
)

func TestAMemberIsShownEvictedBlockedAndLetInAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx := t.Context()
	f.create("sale", nil)
	f.begin("sale")
	for _, m := range []string{"ann", "a/b"} {
		_, err := f.line.Enter(ctx, "sale", m, 0)
		require.NoError(t, err)
	}
	v, err := f.GetMember(ctx, "sale", "a/b")
	require.NoError(t, err)
	require.Regexp(t, `(?s)member +a/b\nroom +sale\nstate +WAITING\nlane standard +score \d+\nahead +1 of 2 in line\nkept out +no\n`, shown(t, v))
	require.JSONEq(t, string(v.Body), printed(t, v, cli.JSON))

	_, err = f.Evict(ctx, "sale", "a/b", "another")
	require.Equal(t, "confirmation-required", refusal(t, err).Code)
	v, err = f.Evict(ctx, "sale", "a/b", "sale")
	require.NoError(t, err)
	require.Regexp(t, `(?s)state +NOT_ENTERED\nlast stay +EVICTED +\S+Z\nkept out +of this sale`, shown(t, v))

	_, err = f.Block(ctx, "sale", "ann", "another")
	require.Equal(t, http.StatusUnprocessableEntity, refusal(t, err).Status)
	v, err = f.Block(ctx, "sale", "ann", "sale")
	require.NoError(t, err)
	require.Contains(t, shown(t, v), "for good, until unblocked")
	for _, m := range []string{"ann", "a/b"} {
		v, err = f.Unblock(ctx, "sale", m)
		require.NoError(t, err)
		require.Regexp(t, `kept out +no`, shown(t, v))
	}
}
