package transport

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/stamp/node"
)

// A process whose node is stopped takes no calls of its stamp, and answers those to the
// process all the same; one that is gone answers neither.
func TestProcessAnswersWhileItsNodeIsStopped(t *testing.T) {
	s := newStamps(t, nil)
	s.leader()
	answer := func(context.Context, []byte) ([]byte, error) { return []byte("here"), nil }
	s.up[2].Handle(2, "stamp", answer)
	s.up[2].HandleProcess("process", answer)
	for range 2 {
		got, err := s.up[1].CallProcess(t.Context(), 2, "process", nil)
		require.NoError(t, err)
		require.Equal(t, "here", string(got))
		if s.by[2].Node(2) != nil {
			require.NoError(t, s.by[2].Stop(2, false))
		}
	}
	_, err := s.up[1].Call(t.Context(), 1, 2, "stamp", nil)
	require.ErrorIs(t, err, node.ErrUnreachable)
	_, err = s.up[1].CallProcess(t.Context(), 9, "process", nil)
	require.ErrorIs(t, err, node.ErrUnreachable)
	require.NoError(t, s.by[2].Close())
	delete(s.by, 2)
	s.Stop(2)
	// A call that meets the end of the connection may have arrived; the next did not.
	require.Eventually(t, func() bool {
		_, err = s.up[1].CallProcess(t.Context(), 2, "process", nil)
		require.Error(t, err)
		return errors.Is(err, node.ErrUnreachable)
	}, testWait, time.Millisecond)
}
