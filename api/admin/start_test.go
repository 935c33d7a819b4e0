package admin

import (
	"context"
	"math"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// A location that is started is said to run only when it serves; one that takes longer than
// the answer waits is said to start, with what it waits for, and readyz says when it serves.
// Checked with a location that serves after it was asked a number of times.
func TestStartLocationSaysWhenItServes(t *testing.T) {
	for _, c := range []struct {
		name string
		asks int
		wait time.Duration
		want wire.Changed
	}{
		{"serves at once", 0, time.Hour, wire.Changed{Name: "northcentralus", State: wire.Running}},
		{"serves soon", 2, time.Hour, wire.Changed{Name: "northcentralus", State: wire.Running}},
		{"serves late", math.MaxInt, time.Nanosecond, wire.Changed{
			Name: "northcentralus", State: wire.Starting, Waiting: "the blob range has no leader yet",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			f.servesAfter = c.asks
			file, err := OpenTokenFile(filepath.Join(t.TempDir(), TokenFileName))
			require.NoError(t, err)
			srv := httptest.NewServer(Handler(f, prometheus.NewRegistry(), Options{ServingWait: c.wait, TokenFile: file}))
			defer srv.Close()
			client, err := wire.New(srv.URL, srv.Client())
			require.NoError(t, err)
			got, err := client.StartLocation(context.Background(), north)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			r, err := client.Readiness(context.Background())
			require.NoError(t, err)
			require.Equal(t, c.want.State == wire.Running, r.Locations[0].Serving)
			require.Equal(t, c.want.Waiting, r.Locations[0].Reason)
			node, err := client.StartNode(context.Background(), "northcentralus-1")
			require.NoError(t, err)
			require.Equal(t, wire.Changed{Name: "northcentralus-1", State: wire.Running, Waiting: c.want.Waiting}, node)
		})
	}
}
