package queues_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/queues"
	"antipode/stamp"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// seams is a stamp whose queue range is split in front of keys, as far as those can see who ask for the route: it reads what
// is in any of them from the one range that there is.
type seams struct {
	*stamp.Stamp
	table *route.Table
}

func splitAt(t *testing.T, s *stamp.Stamp, cuts ...[]byte) seams {
	var all []route.Range
	whole := route.Unsplit(geo.FirstRange(geo.Queue))
	for _, r := range route.First().Ranges() {
		if r.ID != whole.ID {
			all = append(all, r)
		}
	}
	start := whole.Span.Start
	for i, end := range append(cuts, []byte(whole.Span.End)) {
		all = append(all, route.Range{
			ID: geo.RangeID(20 + i), Service: geo.Queue, Span: geo.Span{Start: start, End: string(end)}, Version: 2,
		})
		start = string(end)
	}
	table, err := route.New(all...)
	require.NoError(t, err)
	return seams{s, table}
}

func (s seams) Route() *route.Table { return s.table }

func (s seams) Read(ctx context.Context, _ geo.RangeID, f func(ranges.State) error) error {
	return s.Stamp.Read(ctx, geo.FirstRange(geo.Queue), f)
}

// ranges returns in how many ranges the subqueues of the queue are that take messages, and how many of these there are.
func (k *kept) ranges(t *testing.T) (ranges, subqueues int) {
	in := map[geo.RangeID]bool{}
	for _, e := range k.dictionary(t).Subqueues {
		if e.State == queues.StateAll {
			in[k.routed.Route().Of(queues.Subqueue{Queue: k.queue, ID: e.ID}.Partition())] = true
			subqueues++
		}
	}
	return len(in), subqueues
}

// A queue gets a subqueue only in a range that has none of them: with one range it stays at one however busy it is.
// With four it gets four, also if one of the ranges holds a millionth of the ids, and the dictionary stands in one
// more. If a queue has several in one range, they are drained to one, busy or not, and no message is lost.
//
// Capability: Queues: Collection and scaling.
func TestKeeperScalesByRoute(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	k := newKept(t)
	k.scale.WithinRange, k.scale.Max = false, 16
	k.renew()
	for range 8 {
		k.load(t, 80)
		k.keep(time.Second)
	}
	require.Empty(t, k.acts)
	var added []queues.SubqueueID
	for id := queues.SubqueueID(1); id < 8; id++ {
		added = append(added, id)
	}
	k.change(t, add(added...))
	for i := range 40 {
		k.put(t, strconv.Itoa(i))
	}
	k.clock.pass(time.Minute)
	drain := func(n int) {
		for round := 0; k.acts[queues.ActRemoved] < n; round++ {
			require.Less(t, round, 60)
			k.load(t, 80)
			got, err := k.Get(t.Context(), k.queue, 4, time.Minute)
			require.NoError(t, err)
			for _, m := range got {
				require.NoError(t, k.Delete(t.Context(), k.queue, m.ID, m.Receipt))
			}
			k.keep(time.Second)
		}
	}
	drain(7)
	require.Equal(t, map[queues.Act]int{queues.ActDrained: 7, queues.ActRemoved: 7}, k.acts)

	first := queues.Subqueue{Queue: k.queue, ID: 1}.Partition().Append(nil)
	cut := func(id queues.SubqueueID) []byte {
		return queues.Subqueue{Queue: k.queue, ID: id}.Partition().Append(nil)
	}
	require.Less(t, string(k.queue.DictionaryPartition().Append(nil)), string(first))
	k.routed = splitAt(t, k.stamp, keys.AppendAccount(nil, geo.Queue, "acct"), cut(0), cut(1<<44), cut(1<<62), cut(3<<62))
	k.renew()
	for range 20 {
		k.load(t, 400)
		k.keep(time.Second)
	}
	in, of := k.ranges(t)
	require.Equal(t, []int{4, 4}, []int{in, of})
	require.Equal(t, 3, k.acts[queues.ActAdded])
}
