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
	return startTest(t, Options{Configure: configure})
}

// StartWitnessed is StartTest with a witness, whose leases live as long as lease says.
func StartWitnessed(t *testing.T, lease config.Duration) *Rig {
	t.Helper()
	return startTest(t, Options{Lease: lease})
}

func startTest(t *testing.T, o Options) *Rig {
	t.Helper()
	if testing.Short() {
		t.Skip("node processes need more time than -short has")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	o.Binary, o.Dir = devproc.Binary(), t.TempDir()
	r, err := Start(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		err := r.Check()
		if t.Failed() {
			for _, name := range append(All(), Witness) {
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
