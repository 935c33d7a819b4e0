package slowlink

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/faults/rig"
)

const (
	// warm is how long the traffic runs before anything is measured, in the long form: until the memtables and the
	// heaps have their size. atRest is how long is measured then before the first fault.
	warm   = 2 * time.Minute
	atRest = time.Minute
	// memoryMax is how much a process may grow on a narrow link above the most that it had at rest, in bytes;
	// excessMax how much older Last Sync Time may be than the oldest commit that the secondary has not, on one
	// that is wide enough.
	memoryMax = 32 << 20
	excessMax = 2 * time.Second
	// crossedMax is how much may cross of what the writers need: what is under way when a link becomes
	// narrow, and on a busy machine, crosses again.
	crossedMax = 1.5
)

// With a link of 1.1, 0.9 and 0.5 times what the writers need of it, the writers do not notice, memory
// stays flat, Last Sync Time is true, and everything arrives once there is room. At 1.1 times Last Sync Time
// stays within 2 s of the oldest commit that was not sent.
func TestNarrowLink(t *testing.T) {
	r := start(t)
	ctx := t.Context()
	w := begin(t, r)
	out := r.RateFrom(rig.North)
	rig.Pause(ctx, min(*duration, warm))
	before, began := out.Carried(), time.Now()
	w.cutWrites()
	quiet, base := watch(ctx, t, r, min(*duration, atRest))
	need := float64(out.Carried()-before) / time.Since(began).Seconds()
	took, failed := w.cutWrites()
	require.Empty(t, failed)
	t.Logf("quiet: %.0f bytes/s; writes p50 %v p99 %v of %d; lag %v", need, quantile(took, .5), quantile(took, .99), len(took), quiet)
	for _, times := range []float64{1.1, 0.9, 0.5} {
		out.Set(int64(need * times))
		before, began := out.Carried(), time.Now()
		lag, memory := watch(ctx, t, r, *duration)
		memory.first = base.most
		sent := float64(out.Carried()-before) / time.Since(began).Seconds()
		took, failed := w.cutWrites()
		what := fmt.Sprintf("%.1f times", times)
		t.Logf("%s: %.0f bytes/s sent; writes p50 %v p99 %v most %v of %d; lag %v", what, sent,
			quantile(took, .5), quantile(took, .99), quantile(took, 1), len(took), lag)
		t.Logf("%s: memory at rest, and growth in MiB:%v", what, memory)
		require.Empty(t, failed, what)
		if strict() {
			promise(t, memory.grown() < memoryMax, "%s: memory grew by %d bytes", what, memory.grown())
			promise(t, sent < 1.05*need*times, "%s: %.0f bytes/s sent", what, sent)
			promise(t, times < 1 || quantile(lag.excess, 1) <= excessMax, "%s: Last Sync Time %v above the oldest commit", what, quantile(lag.excess, 1))
		}
		out.Set(0)
		drained := time.Now()
		waitLag(ctx, t, r, 3*time.Second)
		rig.Pause(ctx, time.Second)
		crossed := float64(out.Carried()-before) / (need * time.Since(began).Seconds())
		if strict() {
			promise(t, crossed < crossedMax, "%s: %.2f times what was needed has crossed", what, crossed)
		}
		t.Logf("%s: drained %v after there was room; %.2f times what the writers need has crossed", what, time.Since(drained).Round(100*time.Millisecond), crossed)
		_, memory = watch(ctx, t, r, min(*duration/4, atRest)) // What the drain took is to be given back.
		memory.first = base.most
		t.Logf("%s: memory at rest, and growth in MiB, afterwards:%v", what, memory)
		w.cutWrites()
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	w.stop(ctx, t)
}
