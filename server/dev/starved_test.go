package dev

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/server/location"
	"antipode/stamp/node"
)

// starvedVariable is how long TestStarved watches, if not starvedFor: "5m" by hand.
const (
	starvedVariable = "ANTIPODE_STARVED"
	starvedFor      = 15 * time.Second
	// spinners is how many goroutines compete with the cluster for the one processor: each
	// goes round for up to 10 ms before the next one.
	spinners = 4
	// The process gets no processor at all for stillFor, after each runsFor.
	stillFor = 3500 * time.Millisecond
	runsFor  = 1500 * time.Millisecond
)

// slowDisk is a file system whose fsyncs take as long as those of a disk that others use: up
// to 20 ms mostly, some 150 ms, a few 400 ms.
type slowDisk struct {
	vfs.FS
	rng *rand.Rand
	mu  *sync.Mutex
}

// Unwrap implements vfs.FS.
func (d slowDisk) Unwrap() vfs.FS { return d.FS }

// Create implements vfs.FS.
func (d slowDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.wrap(d.FS.Create(name, c))
}

// OpenReadWrite implements vfs.FS.
func (d slowDisk) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.wrap(d.FS.OpenReadWrite(name, c, opts...))
}

// ReuseForWrite implements vfs.FS.
func (d slowDisk) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.wrap(d.FS.ReuseForWrite(oldname, newname, c))
}

func (d slowDisk) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return slowFile{f, d}, nil
}

// slowFile delays what makes a file durable.
type slowFile struct {
	vfs.File
	d slowDisk
}

func (f slowFile) delay() {
	f.d.mu.Lock()
	n := f.d.rng.IntN(1000)
	f.d.mu.Unlock()
	switch {
	case n < 2:
		time.Sleep(400 * time.Millisecond)
	case n < 20:
		time.Sleep(150 * time.Millisecond)
	default:
		time.Sleep(time.Duration(n) * 20 * time.Microsecond)
	}
}

// Sync implements vfs.File.
func (f slowFile) Sync() error {
	f.delay()
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f slowFile) SyncData() error {
	f.delay()
	return f.File.SyncData()
}

// warnings keeps what the cluster warned of.
type warnings struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

// Enabled implements slog.Handler.
func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// WithAttrs implements slog.Handler.
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// Handle implements slog.Handler.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	return nil
}

// since returns the lines behind the first n.
func (w *warnings) since(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines[n:]
}

// standStill stops this process for d, as a host does that gives it no processor.
func standStill(t *testing.T, d time.Duration) {
	t.Helper()
	script := fmt.Sprintf("kill -STOP %[1]d; sleep %[2]f; kill -CONT %[1]d", os.Getpid(), d.Seconds())
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", script).Run())
}

// A starved process draws no conclusions about others. With one processor, shared with spinning
// goroutines and taken away for seconds, and a disk with slow fsyncs, an idle cluster changes
// no leader and no in-sync set, raises no alarm and drops no connection. ANTIPODE_STARVED=5m
// watches for longer.
func TestStarved(t *testing.T) {
	watch := starvedFor
	if s := os.Getenv(starvedVariable); s != "" {
		var err error
		watch, err = time.ParseDuration(s)
		require.NoError(t, err, starvedVariable)
	} else if testing.Short() {
		t.Skip("it watches for a while")
	}
	var alarms atomic.Int64
	disk := slowDisk{vfs.Default, rand.New(rand.NewPCG(1, 1)), &sync.Mutex{}}
	warned := &warnings{Handler: slog.DiscardHandler}
	c := startAtPace(t, slog.New(warned), func(o *location.Options) {
		o.State.FS = disk
		alarm := o.OnAlarm
		o.OnAlarm = func(reason string) {
			alarms.Add(1)
			t.Log("alarm", reason)
			alarm(reason)
		}
	})
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx, cancel := context.WithCancel(t.Context())
	var spin sync.WaitGroup
	defer spin.Wait()
	defer cancel()
	for range spinners {
		spin.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	before, lines := c.newestEvents(), len(warned.since(0))
	for end := time.Now().Add(watch); time.Now().Before(end); {
		<-time.After(runsFor)
		standStill(t, stillFor)
	}
	<-time.After(runsFor)
	for name, l := range c.locations {
		for _, e := range l.Events() {
			if e.Number > before[name] {
				require.NotContains(t, []node.EventKind{node.LeaderElected, node.LeftInSync}, node.EventKind(e.Kind), "%+v", e)
			}
		}
	}
	require.Zero(t, alarms.Load())
	for _, line := range warned.since(lines) {
		require.NotContains(t, line, "detached", "the stream's consumer")
		require.NotContains(t, line, "connection lost")
		t.Log(line)
	}
}

// startAtPace runs a cluster with the ticks of production, and waits until it is whole.
func startAtPace(t *testing.T, logger *slog.Logger, adjust func(*location.Options)) *Cluster {
	t.Helper()
	c, err := Open(ClusterOptions{Dir: t.TempDir(), Host: "127.0.0.1", PortBase: freeBase(t), Logger: logger, adjust: adjust})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.Start(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.EnsureAccount(ctx, North, "northacct", key64, key64))
	_, err = c.WaitLive(ctx, "northacct")
	require.NoError(t, err)
	require.Eventually(t, c.inSync, time.Minute, 10*time.Millisecond)
	return c
}

// inSync reports whether every range has a leader, with an event of its election, and all
// replicas in sync.
func (c *Cluster) inSync() bool {
	for _, l := range c.locations {
		elected := map[geo.RangeID]bool{}
		for _, e := range l.Events() {
			if e.Kind == string(node.LeaderElected) {
				elected[e.Range] = true
			}
		}
		for _, s := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
			r := l.Leader(geo.FirstRange(s))
			if r == nil || r.InSync() < 3 || !elected[r.ID()] {
				return false
			}
		}
	}
	return true
}

// newestEvents are the numbers of the newest events.
func (c *Cluster) newestEvents() map[geo.Location]uint64 {
	out := map[geo.Location]uint64{}
	for name, l := range c.locations {
		for _, e := range l.Events() {
			out[name] = max(out[name], e.Number)
		}
	}
	return out
}
