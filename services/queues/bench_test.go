package queues_test

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/queues"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

const (
	hour         = time.Hour
	benchClients = 64
)

// BenchmarkCycles is what putting, getting and deleting a message costs on one queue, 64 at once, on three nodes in
// memory: what the commands and the range cost beside disks, networks and HTTP. With a backlog the queue has so many
// messages that wait, and as many that are hidden.
func BenchmarkCycles(b *testing.B) {
	for _, bytes := range []int{100, 1024, 4096} {
		for _, backlog := range []int{0, 10_000} {
			b.Run(fmt.Sprintf("bytes=%d/backlog=%d", bytes, backlog), func(b *testing.B) { benchmarkCycles(b, bytes, backlog, 1) })
		}
	}
}

// BenchmarkSubqueues is BenchmarkCycles by the number of subqueues, all of them in one range.
func BenchmarkSubqueues(b *testing.B) {
	for _, n := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("subqueues=%d", n), func(b *testing.B) { benchmarkCycles(b, 100, 0, n) })
	}
}

// benchStamp is three nodes that keep their files in fs, and a queue without messages.
func benchStamp(b testing.TB, fs vfs.FS) (*stamp.Stamp, queues.Queue) {
	quiet := slog.New(slog.DiscardHandler)
	s := stamp.New(node.Options{
		Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: clock.System{}, Transport: memtransport.New(),
		Tick: 20 * time.Millisecond, ElectionTicks: 100, InSyncTimeout: time.Minute, Seed: 1,
		State: state.Options{FS: fs, Logger: quiet}, Logger: quiet,
	})
	for _, id := range s.Nodes() {
		require.NoError(b, s.Start(id))
	}
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	stamptest.Submit(b, s, geo.FirstRange(geo.Queue), stamptest.Gate{Account: "acct", Gate: change.Gate{
		Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true,
	}})
	return s, queues.Queue{Account: "acct", Name: "jobs", Generation: keys.Generation{Epoch: 1, Created: 2}}
}

// benchEach calls f n times, by 64 callers at once.
func benchEach(b *testing.B, n int, f func() error) {
	var left atomic.Int64
	left.Store(int64(n))
	var done sync.WaitGroup
	for range benchClients {
		done.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

func benchmarkCycles(b *testing.B, bytes, backlog, subqueues int) {
	s, q := benchStamp(b, vfs.NewMem())
	write := primary.New(s)
	spread(b, write, q, subqueues)
	all := queues.New(queues.Options{Stamp: s, Writer: write, Clock: clock.System{}})
	text := make([]byte, bytes)
	put := func() error {
		_, err := all.Put(b.Context(), q, queues.PutOptions{Text: text, TTL: hour})
		return err
	}
	var empty atomic.Int64
	get := func() (queues.Message, error) {
		for {
			got, err := all.Get(b.Context(), q, 1, hour)
			if err != nil {
				return queues.Message{}, err
			}
			if len(got) > 0 {
				return got[0], nil
			}
			// Each subqueue was asked when it had none: others took what was there, and put into one asked before.
			empty.Add(1)
		}
	}
	benchEach(b, 2*backlog, put)
	benchEach(b, backlog, func() error { _, err := get(); return err })
	b.ResetTimer()
	before := processorTime(b)
	benchEach(b, b.N, func() error {
		if err := put(); err != nil {
			return err
		}
		m, err := get()
		if err != nil {
			return err
		}
		return all.Delete(b.Context(), q, m.ID, m.Receipt)
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/cycle")
	if subqueues > 1 {
		b.ReportMetric(float64(empty.Load())/float64(b.N), "empty/cycle")
	}
}

// spread opens so many subqueues of a queue.
func spread(b *testing.B, write *primary.Primary, q queues.Queue, n int) {
	if n == 1 {
		return
	}
	d := &queues.Dictionary{Subqueues: []queues.Entry{{Schema: 1, State: queues.StateAll}}}
	for id := queues.SubqueueID(1); id < queues.SubqueueID(n); id++ {
		at := queues.Command{At: queues.Subqueue{Queue: q, ID: id}}
		require.NoError(b, write.Write(b.Context(), &queues.Open{Command: at}))
		d.Subqueues = append(d.Subqueues, queues.Entry{ID: id, Schema: 1, State: queues.StateAll})
	}
	require.NoError(b, write.Write(b.Context(), &queues.ChangeDictionary{Queue: q, To: d}))
}

// processorTime is the time of processors that this process has used: on a machine that does other things too, it says
// more than the time that passed.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
