package ranges_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

// BenchmarkReadsBesideWrites is what a read under the leader's lease costs while clients write to the range, on a disk
// that syncs: reads wait while the leader is behind what its followers may show (R5).
func BenchmarkReadsBesideWrites(b *testing.B) {
	quiet := slog.New(slog.DiscardHandler)
	s := stamp.New(node.Options{
		Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: b.TempDir(), Transport: memtransport.New(), Clock: clock.System{}, Seed: 1,
		State: state.Options{FS: vfs.Default, Logger: quiet}, Logger: quiet,
	})
	for _, id := range s.Nodes() {
		require.NoError(b, s.Start(id))
	}
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	id := geo.FirstRange(geo.Table)
	p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: "p"}
	write := stamptest.Change{Partition: p, Record: change.Record{Ops: []change.Op{{Row: []byte("r"), Value: make([]byte, 1000)}}}}
	stamptest.Submit(b, s, id, write)
	for _, writers := range []int{0, 1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			ctx, stop := context.WithCancel(b.Context())
			var wrote, read sync.WaitGroup
			for range writers {
				wrote.Go(func() {
					for ctx.Err() == nil {
						_ = s.Submit(ctx, id, write)
					}
				})
			}
			const readers = 4
			took := make([][]time.Duration, readers)
			b.ResetTimer()
			for i := range took {
				read.Go(func() {
					for range b.N / readers {
						began := clock.System{}.Mono()
						if err := s.Read(b.Context(), id, func(st ranges.State) error {
							_, _, err := st.Get(append(p.Append(nil), 'r'))
							return err
						}); err != nil {
							b.Error(err)
						}
						took[i] = append(took[i], clock.System{}.Mono()-began)
					}
				})
			}
			read.Wait()
			b.StopTimer()
			stop()
			wrote.Wait()
			all := slices.Sorted(slices.Values(slices.Concat(took...)))
			if len(all) == 0 {
				return
			}
			for name, n := range map[string]int{"p50-us": 500, "p99-us": 990, "p999-us": 999} {
				b.ReportMetric(float64(all[(len(all)-1)*n/1000].Nanoseconds())/1e3, name)
			}
		})
	}
}
