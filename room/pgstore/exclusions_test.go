package pgstore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

var bob = room.Subject{Member: "bob"}

func TestExclusionsAreAuditedOnceAndEndWithUnblock(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx := t.Context()
	for range 2 {
		require.NoError(t, f.Block(ctx, "sale", bob, ann))
		require.NoError(t, f.Evict(ctx, "sale", bob, ann))
	}
	out, err := f.KeptOut(ctx, "sale", "bob")
	require.NoError(t, err)
	require.Equal(t, room.Exclusion{Blocked: true, Evicted: true}, out)
	for range 2 {
		require.NoError(t, f.Unblock(ctx, "sale", bob, ann))
	}
	out, err = f.KeptOut(ctx, "sale", "bob")
	require.NoError(t, err)
	require.Zero(t, out)
	var actions []string
	for _, c := range f.changes("sale") {
		actions = append(actions, c.Action)
	}
	require.Equal(t, []string{"member.unblock", "member.evict", "member.block", "room.create"}, actions)
	evicted := f.changes("sale")[1]
	require.JSONEq(t, `{"member":"bob","blocked":true,"evicted":false}`, string(evicted.Before))
	require.JSONEq(t, `{"member":"bob","blocked":true,"evicted":true}`, string(evicted.After))
	for _, call := range []func(context.Context, string, room.Subject, room.Actor) error{f.Block, f.Evict, f.Unblock} {
		require.ErrorIs(t, call(ctx, "nowhere", bob, ann), room.ErrNotFound)
	}
}

// A place that ends is a change, also of somebody who was kept out before.
func TestAPlaceThatEndsIsAuditedAlthoughTheExclusionIsOld(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	require.NoError(t, f.Evict(t.Context(), "sale", bob, ann))
	require.NoError(t, f.Evict(t.Context(), "sale", room.Subject{Member: "bob", State: "WAITING", Lane: "standard", Score: 7}, ann))
	changes := f.changes("sale")
	require.Len(t, changes, 3)
	require.JSONEq(t, `{"member":"bob","state":"WAITING","lane":"standard","score":7,"blocked":false,"evicted":true}`, string(changes[0].Before))
	require.JSONEq(t, `{"member":"bob","blocked":false,"evicted":true}`, string(changes[0].After))
}

func TestAnEvictionEndsWithItsSaleAndABlockWithNone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx := t.Context()
	require.NoError(t, f.Block(ctx, "sale", bob, ann))
	require.NoError(t, f.Evict(ctx, "sale", bob, ann))
	_, err := f.Flush(ctx, "sale", ann)
	require.NoError(t, err)
	out, err := f.KeptOut(ctx, "sale", "bob")
	require.NoError(t, err)
	require.Equal(t, room.Exclusion{Blocked: true}, out)
	require.NoError(t, f.Delete(ctx, "sale", ann))
	_, err = f.Create(ctx, "sale", room.Defaults(), ann)
	require.NoError(t, err)
	out, err = f.KeptOut(ctx, "sale", "bob")
	require.NoError(t, err)
	require.Equal(t, room.Exclusion{Blocked: true}, out)
}

func TestTheListOfExclusionsIsReadAgainWheneverItHasChanged(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx := t.Context()
	mark := ""
	read := func() []room.Bar {
		bars, next, err := f.Exclusions(ctx, mark)
		require.NoError(t, err)
		changed := next != mark
		mark = next
		again, same, err := f.Exclusions(ctx, mark)
		require.NoError(t, err)
		require.Equal(t, mark, same)
		require.Empty(t, again)
		require.True(t, changed, "a change was not seen")
		return bars
	}
	require.Empty(t, read())
	require.NoError(t, f.Evict(ctx, "sale", bob, ann))
	require.Equal(t, []room.Bar{{Room: "sale", Member: "bob", Sale: 1}}, read())
	require.NoError(t, f.Unblock(ctx, "sale", bob, ann))
	require.NoError(t, f.Evict(ctx, "sale", room.Subject{Member: "eve"}, ann))
	require.Equal(t, []room.Bar{{Room: "sale", Member: "eve", Sale: 1}}, read(), "as many as before, and another one")
	_, err := f.Flush(ctx, "sale", ann)
	require.NoError(t, err)
	require.NoError(t, f.Block(ctx, "sale", bob, ann))
	require.Equal(t, []room.Bar{{Room: "sale", Member: "bob"}}, read(), "the sale of the eviction is over")
}
