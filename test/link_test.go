package test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/load"
	"antipode/test/rest"
)

// standsFor is how long a Last Sync Time must stand still while the link is cut.
const standsFor = 4 * time.Second

// With the link cut the primary goes on writing, -secondary keeps the old value
// and Last Sync Time stands still; after the link is healed the value arrives and
// Last Sync Time passes it.
// It holds invariant 3.
//
// Capability: Two locations: Shipping, the cut link, the stopped primary.
// Capability: Two locations: Last Sync Time is true.
func TestCutLink(t *testing.T) {
	p := startDev(t)
	first, second := p.Client(0, false), p.Client(0, true)
	require.NoError(t, first.CreateTable(t.Context(), "link"))
	e := rest.Entity{"PartitionKey": "p", "RowKey": "r", "V": "old"}
	requireWritten(t, first, e)
	eventually(t, arriveWait, "old value at -secondary", valueIs(second, "old"))

	link, err := p.Admin().CutLink(t.Context())
	require.NoError(t, err)
	require.Equal(t, admin.LinkCut, link.State)
	e["V"] = "new"
	newer := requireWritten(t, first, e)
	// What had left before the cut may still be applied, on a starved machine seconds later. Nothing of this write is.
	for end := time.Now().Add(standsFor); time.Now().Before(end); <-time.After(poll) {
		require.NoError(t, valueIs(second, "old")(t.Context()))
		for _, s := range geo.Services {
			require.False(t, statsOf(t, second, s).LastSyncTime.After(newer.Time()), "%v", s)
		}
	}
	requireBacklog(t, p)

	_, err = p.Admin().HealLink(t.Context())
	require.NoError(t, err)
	eventually(t, arriveWait, "new value at -secondary", valueIs(second, "new"))
	ctx, cancel := contextFor(t, arriveWait)
	defer cancel()
	for _, s := range geo.Services {
		require.NoError(t, load.WaitLastSyncTime(ctx, second, s, newer.Time()))
	}
}

// requireWritten upserts an entity and returns its commit time.
func requireWritten(t *testing.T, c *rest.Client, e rest.Entity) geo.Timestamp {
	t.Helper()
	a, err := c.Replace(t.Context(), "link", "", e)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, a.Status, "%v", a)
	at, ok := a.CommitTime()
	require.True(t, ok, "%v", a.Header)
	return at
}

// valueIs checks the value of the one entity these tests write.
func valueIs(c *rest.Client, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		e, a, err := c.GetEntity(ctx, "link", "p", "r")
		if err == nil && !a.OK() {
			err = fmt.Errorf("%v", a)
		}
		return sameOrWait(err, e["V"], any(want))
	}
}

// requireBacklog requires that the status shows the write that waits.
func requireBacklog(t *testing.T, p *devproc.Process) {
	t.Helper()
	eventually(t, arriveWait, "status shows the table range of the north", func(ctx context.Context) error {
		status, err := p.Admin().Status(ctx)
		if err != nil {
			return err
		}
		require.Equal(t, admin.LinkCut, status.Link.State)
		for _, l := range status.Locations {
			for _, r := range l.Ranges {
				if l.Name == north && r.Service == geo.Table.String() && r.LeaderView != nil {
					require.Positive(t, r.BacklogRecords)
					require.Positive(t, r.BacklogBytes)
					require.Greater(t, r.BacklogAgeSeconds, 1.0)
					return nil
				}
			}
		}
		return fmt.Errorf("no leader of it in %+v", status.Locations)
	})
}

// With the primary location stopped, everything at or below Last Sync Time is
// read in the south, and writes are refused within two seconds as busy; after it
// is started again all that was acknowledged is there, at both locations.
// It holds invariant 3.
//
// Capability: Two locations: Shipping, the cut link, the stopped primary.
// Capability: Two locations: Last Sync Time is true.
func TestStopPrimaryLocation(t *testing.T) {
	p := startDev(t)
	ctx, cancel := contextFor(t, 3*time.Minute)
	defer cancel()
	l := load.New(p.Client(0, false), p.Client(0, true), load.Options{Clients: 16, BigWritesMax: 6, Seed: 2})
	require.NoError(t, l.Setup(ctx))
	watch := watching(ctx, l, l.Secondary)

	running, halt := context.WithCancel(ctx)
	defer halt()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(running) }()
	eventually(t, arriveWait, "Last Sync Time covers writes", func(context.Context) error {
		_, demanded := watch.sampler.Counts()
		if acks, _ := l.Oracle.Acks(); acks < acksPerRound || demanded == 0 {
			return fmt.Errorf("%d writes, %d reads demanded", acks, demanded)
		}
		return nil
	})
	_, err := p.Admin().StopLocation(ctx, north) // Under load.
	require.NoError(t, err)
	halt()
	require.NoError(t, <-ended)

	insert := func(ctx context.Context) (rest.Answer, error) {
		return p.Client(0, false).Insert(ctx, "crash", rest.Entity{"PartitionKey": "p", "RowKey": "r"})
	}
	// One of several, as the machine may take longer than the server.
	eventually(t, arriveWait, "a write is refused in time", func(ctx context.Context) error {
		began := time.Now()
		a, err := insert(ctx)
		took := time.Since(began)
		require.NoError(t, err)
		require.Equal(t, "503 ServerBusy", fmt.Sprint(a.Status, " ", a.Code), "%v", a)
		require.NotEmpty(t, a.Header.Get("Retry-After"))
		if took > 2500*time.Millisecond {
			return fmt.Errorf("it took %v", took)
		}
		return nil
	})

	// The gateway and the south's own front end serve the same; a fresh sampler
	// demands everything below the value once more, now that the north is gone.
	for _, ports := range []int{0, devproc.SouthPorts} {
		secondary := p.Client(ports, true)
		require.True(t, statsOf(t, secondary, geo.Table).Known)
		again := watching(ctx, l, secondary)
		eventually(t, arriveWait, "the sampler has demanded something", func(context.Context) error {
			if samples, reads := again.sampler.Counts(); samples == 0 || reads == 0 {
				return fmt.Errorf("%d values, %d reads", samples, reads)
			}
			return nil
		})
		again.stop(t)
	}
	started(ctx, t, p)
	a, err := insert(ctx)
	require.NoError(t, err)
	require.True(t, a.OK(), "the location was said to serve: %v", a)
	require.NoError(t, l.Resolve(ctx))
	require.NoError(t, l.Final(ctx))
	watch.stop(t)
}

// started starts the north and returns when it is said to serve.
func started(ctx context.Context, t *testing.T, p *devproc.Process) {
	t.Helper()
	changed, err := p.Admin().StartLocation(ctx, north)
	require.NoError(t, err)
	if changed.State == admin.Running {
		require.Empty(t, changed.Waiting)
		return
	}
	require.Equal(t, admin.Starting, changed.State)
	eventually(t, arriveWait, "the north serves", func(ctx context.Context) error {
		r, err := p.Admin().Readiness(ctx)
		if err != nil {
			return err
		}
		if !r.Locations[0].Serving {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
}

// At rest Last Sync Time moves on by closed records alone, and as a metric it is
// within half a second of the present.
// It holds R12.
func TestLastSyncTimeAtRest(t *testing.T) {
	p := startDev(t)
	second := p.Client(0, true)
	before := statsOf(t, second, geo.Table).LastSyncTime
	eventually(t, arriveWait, "last sync time moves at rest", func(ctx context.Context) error {
		stats, err := second.Stats(ctx, geo.Table)
		if err == nil && stats.LastSyncTime.Sub(before) < 2*time.Second {
			err = fmt.Errorf("still %v", stats.LastSyncTime)
		}
		return err
	})
	// One reading may be taken just before the next closed record; of several the
	// freshest must be close.
	const bound = 500 * time.Millisecond
	eventually(t, arriveWait, "metric within 0.5 s", func(ctx context.Context) error {
		ages, err := lastSyncAges(ctx, p)
		if err == nil && len(ages) == 0 {
			err = fmt.Errorf("no antipode_last_sync_timestamp_seconds on the south's metrics")
		}
		for series, age := range ages {
			if age < 0 || age > bound {
				return fmt.Errorf("%s is %v old", series, age)
			}
		}
		return err
	})
}

// lastSyncAges scrapes the south and returns the age of each Last Sync Time.
func lastSyncAges(ctx context.Context, p *devproc.Process) (map[string]time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.AdminURL(devproc.SouthPorts)+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	lines, err := scrape(p, r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	out := map[string]time.Duration{}
	for _, line := range lines {
		series, value, found := strings.Cut(line, " ")
		if !found || !strings.HasPrefix(series, "antipode_last_sync_timestamp_seconds") {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		out[series] = now.Sub(time.UnixMicro(int64(seconds * 1e6)))
	}
	return out, nil
}
