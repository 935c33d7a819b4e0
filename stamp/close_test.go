package stamp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/node"
)

// A closed stamp starts nothing, since nothing waits for it any more: the answer of another
// location may come after Close has begun to wait.
func TestGoAfterClose(t *testing.T) {
	s := stamp.New(node.Options{Location: "north", Clock: clock.System{}})
	ended := make(chan error, 1)
	s.Go(func(ctx context.Context) {
		<-ctx.Done()
		ended <- ctx.Err()
	})
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-ended, context.Canceled)

	ran := make(chan struct{})
	s.Go(func(context.Context) { close(ran) })
	require.NoError(t, s.Close(), "which waits for what was started")
	select {
	case <-ran:
		require.Fail(t, "it ran")
	default:
	}
}
