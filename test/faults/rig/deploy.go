package rig

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/server/config"
	"antipode/test/devproc"
)

// startWait bounds a start: a slow machine is not a broken promise.
const startWait = 2 * time.Minute

// StartTest runs a deployment until the test ends; no process may end by itself. configure may change the options of a
// node; nil changes nothing. With -short the test is skipped.
func StartTest(t *testing.T, configure func(c *config.Node)) *Rig {
	t.Helper()
	if testing.Short() {
		t.Skip("node processes need more time than -short has")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	r, err := Start(ctx, Options{Binary: devproc.Binary(), Dir: t.TempDir(), Configure: configure})
	require.NoError(t, err)
	t.Cleanup(func() {
		err := r.Check()
		if t.Failed() {
			for _, name := range All() {
				t.Logf("output of %s:\n%s", name, r.Output(name))
			}
		}
		require.NoError(t, r.Close())
		require.NoError(t, err)
	})
	return r
}

// Pause waits for d or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
