package link

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A link that is cut while a call runs loses the answer; one that was healed in between
// does not bring it back, and new calls pass.
func TestCutLosesAnswer(t *testing.T) {
	l := New()
	defer l.Close()
	err := l.Do(t.Context(), func(ctx context.Context) error {
		l.Cut()
		<-ctx.Done()
		l.Heal()
		return nil
	})
	require.ErrorIs(t, err, ErrCut)
	require.NoError(t, l.Do(t.Context(), func(ctx context.Context) error { return ctx.Err() }))
}

// A delay counts for each call, not against its deadline.
func TestDelayedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		defer l.Close()
		l.Delay(3 * CallTimeout)
		start := time.Now()
		require.NoError(t, l.Do(t.Context(), func(ctx context.Context) error { return ctx.Err() }))
		require.Equal(t, 3*CallTimeout, time.Since(start))
	})
}
