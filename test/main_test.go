package test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

const (
	readyWait = time.Minute
	stopWait  = 30 * time.Second
	// arriveWait bounds how long a change may take to the other location. It is
	// far above what it does take: a slow machine is not a broken promise.
	arriveWait = 30 * time.Second
	poll       = 50 * time.Millisecond
)

// The locations of antipode dev.
const (
	north = geo.Location("northcentralus")
	south = geo.Location("southcentralus")
)

func TestMain(m *testing.M) { os.Exit(devproc.Main(m)) }

// startDev runs antipode dev on a new data folder and free ports until the test
// ends, and returns when it is ready and its statistics are live.
func startDev(t *testing.T, args ...string) *devproc.Process {
	t.Helper()
	if testing.Short() {
		t.Skip("end-to-end tests need more time than -short has")
	}
	base, err := devproc.FreePortBase(t)
	require.NoError(t, err)
	hc := devproc.NewHTTPClient()
	t.Cleanup(hc.CloseIdleConnections)
	return launch(t, devproc.Config{
		Binary: devproc.Binary(), Dir: t.TempDir(), PortBase: base, Args: args, HTTP: hc,
	})
}

// launch starts a server of cfg, on whatever its data folder holds, and waits
// until it is ready and live. It ends with the test at the latest.
func launch(t *testing.T, cfg devproc.Config) *devproc.Process {
	t.Helper()
	p, err := devproc.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of antipode dev:\n%s", p.Output())
		}
		require.NoError(t, p.Kill9())
	})
	ctx, cancel := context.WithTimeout(t.Context(), readyWait)
	defer cancel()
	require.NoError(t, p.Ready(ctx))
	waitLive(t, p.Client(0, true))
	return p
}

// waitLive waits until every service is live at the secondary.
func waitLive(t *testing.T, secondary *rest.Client) {
	t.Helper()
	for _, s := range geo.Services {
		eventually(t, arriveWait, fmt.Sprintf("statistics of %v live", s), func(ctx context.Context) error {
			stats, err := secondary.Stats(ctx, s)
			if err == nil && (stats.Status != "live" || !stats.Known) {
				err = fmt.Errorf("%+v", stats)
			}
			return err
		})
	}
}

// eventually repeats check until it returns nil, and fails the test with its last
// error when the time is over.
func eventually(t *testing.T, within time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(t, err, "%s: not within %v", what, within)
		case <-time.After(poll):
		}
	}
}

// statsOf reads the statistics of one service, which must be known.
func statsOf(t *testing.T, secondary *rest.Client, s geo.Service) rest.Stats {
	t.Helper()
	stats, err := secondary.Stats(t.Context(), s)
	require.NoError(t, err)
	require.True(t, stats.Known, "%+v", stats)
	return stats
}
