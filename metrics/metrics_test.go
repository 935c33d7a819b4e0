package metrics

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files; then read the diff")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	north = geo.Location("northcentralus")
	south = geo.Location("southcentralus")
)

// world is a Source of what it holds.
type world struct {
	ranges   []RangeSample
	accounts AccountSamples
}

func (w *world) Ranges() []RangeSample { return w.ranges }
func (w *world) Accounts() AccountSamples { // The collector changes what it gets.
	a := w.accounts
	a.SyncTimes, a.LastSyncTimes = slices.Clone(a.SyncTimes), slices.Clone(a.LastSyncTimes)
	a.Unavailable, a.Copies = slices.Clone(a.Unavailable), slices.Clone(a.Copies)
	return a
}

func copies() []CopySample {
	rows, bytes, speed, left := uint64(1000), uint64(5<<30), 1.5e6, 1200.5
	return []CopySample{
		{Location: north, Account: "pictures", Rows: 70, Bytes: 900, Waiting: 5},
		{Location: north, Account: "photos", Rows: 900, Bytes: 3 << 30, TotalRows: &rows, TotalBytes: &bytes, BytesPerSecond: &speed, SecondsLeft: &left},
	}
}

func (w *world) Nodes() []NodeSample {
	return []NodeSample{{north, 1, 64 << 30, 256 << 30, 100 << 30, 512 << 20}, {north, 2, 64 << 30, 0, 0, 512 << 20}}
}

func (w *world) Leaders() []LeaderSample {
	return []LeaderSample{{north, geo.Table, 4, true, 3}, {south, geo.Table, 4, false, 0}}
}

func (w *world) Stops() []StopSample {
	return []StopSample{{north, geo.Table, "forked", 1}, {north, geo.Table, "forked", 2}}
}

func (w *world) OutOfService() []DownSample { return []DownSample{{south, 2, "version"}} }

func (w *world) Locations() []LocationSample {
	return []LocationSample{
		{Location: north, Running: true, Confirmed: true, Refused: 2, LinkCut: true, Buses: map[geo.Location]bool{north: true, south: false}},
		{Location: south},
	}
}

func (w *world) Replicas() []ReplicaSample {
	return []ReplicaSample{{north, 4, 1, true}, {north, 4, 2, false}}
}

func instant(t *testing.T, s string) geo.Timestamp {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	require.NoError(t, err)
	return geo.TimestampOf(v)
}

// full is a registry in which every metric has a series.
func full(t *testing.T) (*prometheus.Registry, *world) {
	t.Helper()
	reg := prometheus.NewRegistry()
	requests, err := NewRequests(reg)
	require.NoError(t, err)
	commits, err := NewCommits(reg)
	require.NoError(t, err)
	alarms, err := NewAlarms(reg)
	require.NoError(t, err)
	account := geo.Account("devstoreaccount1")
	w := &world{
		ranges: []RangeSample{
			{north, geo.Catalog, 3, 0, 0, 0, 0, 0, 0},
			{north, geo.Table, 3, 12, 3456, 7890, 1, 0, 250 * time.Millisecond},
			{south, geo.Table, 2, 0, 0, 0, 0, 1, 0},
		},
		accounts: AccountSamples{
			SyncTimes: []SyncSample{
				{south, account, geo.Catalog, instant(t, "2026-11-21T15:04:05.9999999Z")},
				{south, account, geo.Table, instant(t, "2026-11-21T15:04:05.1234567Z")},
			},
			LastSyncTimes: []SyncSample{
				{south, account, geo.Table, instant(t, "2026-11-21T15:04:05.1234567Z")},
				{south, account, geo.Blob, 0},
			},
			Unavailable: []UnavailableSample{{south, account, geo.Blob, "forked"}},
			Copies:      copies(),
			Accounts: []AccountSample{
				{Location: north, Redundancy: "RA-GRS", LastFailover: instant(t, "2026-11-21T15:04:05.1234567Z")},
				{Location: north, Redundancy: "RA-GRS"},
			},
			Operations: []OperationSample{{north, "move", "draining"}},
		},
	}
	require.NoError(t, RegisterGauges(reg, w, 0))
	registerBuild(reg)
	require.NoError(t, RegisterCertificate(reg, func() time.Time { return time.Unix(1_800_000_000, 0) }))
	requests.Observe(north, geo.Table, "InsertEntity", 201, "", 3*time.Millisecond)
	requests.Observe(north, geo.Table, "InsertEntity", 201, "", 5*time.Millisecond)
	requests.Observe(north, geo.Table, "InsertEntity", 409, "EntityAlreadyExists", time.Millisecond)
	requests.Observe(south, geo.Table, "GetEntity", 200, "", 200*time.Microsecond)
	commits.Observe(north, geo.Table, 2*time.Millisecond)
	alarms.Add(south, "gap", 1)
	alarms.Add(south, "fork", 0)
	abandoned, err := NewAbandoned(reg)
	require.NoError(t, err)
	abandoned.Add(north, 0)
	abandoned.Add(south, 1<<20)
	require.NoError(t, RegisterCache(reg, func() int64 { return 96 << 20 }))
	held, err := NewHeld(reg)
	require.NoError(t, err)
	held.Add(north, false, 0)
	held.Add(south, true, 3)
	queued, err := NewQueues(reg)
	require.NoError(t, err)
	queued.AddScaled(north, "added", 2)
	queued.AddCollected(south, false, 0)
	queued.AddCollected(south, true, 1000)
	events, err := NewEvents(reg)
	require.NoError(t, err)
	events.Add(north, "left-in-sync", 1)
	events.Add(south, "left-in-sync", 0)
	gateway, err := NewGateway(reg, []geo.Location{north}, []string{"answered", "refused"})
	require.NoError(t, err)
	gateway.Answered(geo.Blob, 201, 2*time.Millisecond, 1000, 10)
	gateway.Failed(geo.Blob, "ServerBusy")
	gateway.Forwarded(north, "answered")
	dns, err := NewDNS(reg, []string{"10.0.0.53:53"}, []string{"done", "key"})
	require.NoError(t, err)
	dns.Answered("udp", "A", "NOERROR")
	dns.Failed()
	dns.Pushed("10.0.0.53:53", "done")
	require.NoError(t, RegisterDNS(reg, func() DNSSample {
		return DNSSample{7, map[geo.Location]time.Duration{north: 1500 * time.Millisecond}, map[string]int{"10.0.0.53:53": 2}}
	}))
	witness, err := NewWitness(reg, []geo.Location{north}, []string{"renew", "claim"}, []string{"done", "late"})
	require.NoError(t, err)
	witness.Answered(north, "renew", "done")
	witness.Answered("", "claim", "refused")
	witness.Failed()
	require.NoError(t, RegisterWitness(reg, func() WitnessSample {
		return WitnessSample{10 * time.Second, map[geo.Location]int{north: 2, south: 0}, map[geo.Location]time.Duration{north: 1500 * time.Millisecond}}
	}))
	return reg, w
}

// TestExposition freezes names, labels and help texts: dashboards and alerts stand
// on them. Every name of Names has a series, and the linter finds nothing.
func TestExposition(t *testing.T) {
	reg, _ := full(t)
	const golden = "testdata/exposition.golden"
	// What the build says of itself differs from build to build.
	got := regexp.MustCompile(`(?m)^antipode_build_info{.*} 1$`).ReplaceAllString(text(t, reg), `antipode_build_info{version="...",revision="...",go_version="..."} 1`)
	if *rewrite {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)

	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)

	all, err := reg.Gather()
	require.NoError(t, err)
	var names []string
	for _, m := range all {
		names = append(names, m.GetName())
	}
	require.ElementsMatch(t, Names(), names)
}

func text(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	all, err := g.Gather()
	require.NoError(t, err)
	var b strings.Builder
	for _, f := range all {
		_, err := expfmt.MetricFamilyToText(&b, f)
		require.NoError(t, err)
	}
	return b.String()
}

// TestGaugesFollowTheSource: a scrape shows the world of its moment. What became
// unknown has no series any more; nothing stale stays.
func TestGaugesFollowTheSource(t *testing.T) {
	reg, w := full(t)
	require.Contains(t, text(t, reg), `antipode_last_sync_timestamp_seconds{account="devstoreaccount1",location="southcentralus",service="table"} 1.795273445123e+09`)
	require.NotContains(t, text(t, reg), `antipode_last_sync_timestamp_seconds{account="devstoreaccount1",location="southcentralus",service="blob"}`)
	w.ranges, w.accounts = nil, AccountSamples{LastSyncTimes: []SyncSample{{south, "devstoreaccount1", geo.Table, 0}}}
	out := text(t, reg)
	for _, name := range []string{nameInSync, nameBacklogRecords, nameBacklogBytes, nameBacklogAge, nameSyncTime, nameLastSyncTime} {
		require.NotContains(t, out, name)
	}
}

// TestFoldsRanges: several ranges of a service make one series: the worst in-sync
// count and age, the sum of the backlogs, the least sync time, and no sync time when
// one of them is unknown, whatever the order.
func TestFoldsRanges(t *testing.T) {
	require.Equal(t,
		[]RangeSample{{north, geo.Table, 2, 7, 300, 70, 3, 1, time.Second}, {south, geo.Table, 3, 1, 1, 1, 0, 0, 1}},
		foldRanges([]RangeSample{
			{north, geo.Table, 3, 5, 100, 30, 1, 0, 1}, {south, geo.Table, 3, 1, 1, 1, 0, 0, 1}, {north, geo.Table, 2, 2, 200, 40, 2, 1, time.Second},
		}))
	s := func(v geo.Timestamp) SyncSample { return SyncSample{south, "abc", geo.Blob, v} }
	require.Equal(t, []SyncSample{s(3)}, foldSync([]SyncSample{s(5), s(3), s(4)}))
	for _, unknown := range [][]SyncSample{{s(0), s(3)}, {s(3), s(0)}, {s(3), s(0), s(4)}} {
		require.Empty(t, foldSync(unknown))
	}
}

// TestUnixSeconds: the value scraped is never above the time it stands for.
func TestUnixSeconds(t *testing.T) {
	require.InDelta(t, 1795273445.999, unixSeconds(instant(t, "2026-11-21T15:04:05.9999999Z")), 0)
}

// TestForLocation: the port of a location shows its series and nobody else's.
func TestForLocation(t *testing.T) {
	reg, _ := full(t)
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "process_wide", Help: "No location."}, func() float64 { return 1 }))
	out := text(t, ForLocation(reg, south))
	require.Contains(t, out, `antipode_in_sync_replicas{location="southcentralus",service="table"} 2`)
	require.NotContains(t, out, "northcentralus")
	require.NotContains(t, out, "process_wide")
	require.NotContains(t, out, nameCommitSeconds, "a family without series is left out")
}

// TestWithoutRegistry: a nil registerer and nil instruments change nothing else.
func TestWithoutRegistry(t *testing.T) {
	r, err := NewRequests(nil)
	require.NoError(t, err)
	r.Observe(north, geo.Blob, "GetBlob", 200, "", time.Second)
	c, err := NewCommits(nil)
	require.NoError(t, err)
	c.Observe(north, geo.Blob, time.Second)
	a, err := NewAlarms(nil)
	require.NoError(t, err)
	a.Add(north, "gap", 2)
	require.Empty(t, a.Raised(north), "none was")
	a.Raise(north, "gap", time.Unix(7, 0))
	require.Equal(t, map[string]uint64{"gap": 3}, a.Counts(north))
	require.Equal(t, map[string]time.Time{"gap": time.Unix(7, 0)}, a.Raised(north))
	require.NoError(t, RegisterGauges(nil, &world{}, 0))

	b, err := NewAbandoned(nil)
	require.NoError(t, err)
	b.Add(north, 1)

	(*Abandoned)(nil).Add(north, 1)
	(*Held)(nil).Add(north, true, 1)
	(*Queues)(nil).AddScaled(north, "added", 1)
	(*Queues)(nil).AddCollected(north, true, 1)
	(*Requests)(nil).Observe(north, geo.Blob, "GetBlob", 200, "", time.Second)
	(*Commits)(nil).Observe(north, geo.Blob, time.Second)
	(*Alarms)(nil).Raise(north, "gap", time.Unix(7, 0))
	(*Gateway)(nil).Answered(geo.Blob, 200, time.Second, 1, 1)
	(*Gateway)(nil).Failed(geo.Blob, "ServerBusy")
	(*Gateway)(nil).Forwarded(north, "answered")
	(*DNS)(nil).Answered("udp", "A", "NOERROR")
	(*DNS)(nil).Failed()
	(*DNS)(nil).Pushed("10.0.0.53:53", "done")
	require.Empty(t, (*Alarms)(nil).Counts(north))
	require.Empty(t, (*Alarms)(nil).Raised(north))
}

// TestRegisterTwice: the second constructor fails and takes nothing of the first
// with it.
func TestRegisterTwice(t *testing.T) {
	reg := NewRegistry()
	first, err := NewRequests(reg)
	require.NoError(t, err)
	_, err = NewRequests(reg)
	require.ErrorContains(t, err, "register metrics")
	first.Observe(north, geo.Blob, "GetBlob", 200, "", time.Second)
	n, err := testutil.GatherAndCount(reg, nameRequests)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
