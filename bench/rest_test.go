package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// A server is at rest after some quiet samples in a row: a pause between two compactions is none.
func TestQuiet(t *testing.T) {
	var q quiet
	for range 3 {
		for range restSamples - 1 {
			require.False(t, q.sample(restBusy))
		}
		require.False(t, q.sample(restBusy+0.1))
	}
	for range restSamples - 1 {
		require.False(t, q.sample(0))
	}
	require.True(t, q.sample(0))
}

// Without a limit nobody waits, and a server that is gone is an error, not one at rest.
func TestAwaitRest(t *testing.T) {
	gone := &server{pid: 1 << 30}
	require.NoError(t, gone.awaitRest(t.Context(), clock.System{}, 0))
	require.ErrorContains(t, gone.awaitRest(t.Context(), clock.System{}, time.Minute), "processor time of the server")
}
