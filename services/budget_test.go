package services

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// A page ends when its work or its time is spent, and at once when its client is gone.
func TestBudget(t *testing.T) {
	c := clock.NewManual(time.Unix(0, 0))
	spend := func(ctx context.Context, b *Budget, work int) bool {
		more, err := b.Spend(ctx, work)
		require.NoError(t, err)
		return more
	}

	b := NewBudget(t.Context(), c)
	require.True(t, spend(t.Context(), b, scanWorkMax-1))
	require.False(t, spend(t.Context(), b, 1), "the work is spent")

	b = NewBudget(t.Context(), c)
	c.Advance(scanTimeMax)
	require.True(t, spend(t.Context(), b, 1), "the clock is not read for each value")
	require.False(t, spend(t.Context(), b, scanLookEvery), "the time is spent")
	require.False(t, spend(t.Context(), b, 1), "a spent budget stays so")

	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	b = NewBudget(short, c)
	c.Advance(time.Second / 2)
	require.False(t, spend(short, b, scanLookEvery), "half of the request's own time is spent")

	gone, leave := context.WithCancel(t.Context())
	b = NewBudget(gone, c)
	leave()
	_, err := b.Spend(gone, scanLookEvery)
	require.ErrorIs(t, err, context.Canceled)
}
