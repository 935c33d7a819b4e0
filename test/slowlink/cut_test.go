package slowlink

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
)

// The link is cut under load and comes back: no writer has an error, nor a pause that the machine does not make
// by itself; Last Sync Time is true at each sample; and all of it arrives.
//
// Capability: Two locations: The link between processes.
func TestCutUnderLoad(t *testing.T) {
	r := start(t)
	ctx := t.Context()
	w := begin(t, r)
	rig.Pause(ctx, min(*duration, warm))
	w.cutWrites()
	quietLag, base := watch(ctx, t, r, min(*duration, atRest))
	quiet, failed := w.cutWrites()
	require.Empty(t, failed)
	north, south := rig.NodesOf(rig.North), rig.NodesOf(rig.South)
	require.NoError(t, r.Cut(proxy.Fault{Refuse: true}, north, south))
	lag, memory := watch(ctx, t, r, *duration)
	memory.first = base.most
	took, failed := w.cutWrites()
	require.NoError(t, r.Cut(proxy.Fault{}, north, south))
	healed := time.Now()
	require.Empty(t, failed)
	require.NotEmpty(t, took)
	t.Logf("quiet: writes p50 %v p99 %v most %v; lag %v", quantile(quiet, .5), quantile(quiet, .99), quantile(quiet, 1), quietLag)
	t.Logf("cut for %v: writes p50 %v p99 %v most %v of %d; lag %v; memory at rest, and growth in MiB:%v", *duration,
		quantile(took, .5), quantile(took, .99), quantile(took, 1), len(took), lag, memory)
	waitLag(ctx, t, r, 3*time.Second)
	took, failed = w.cutWrites()
	require.Empty(t, failed)
	t.Logf("drained %v after it was back: writes meanwhile p50 %v p99 %v most %v", time.Since(healed).Round(100*time.Millisecond),
		quantile(took, .5), quantile(took, .99), quantile(took, 1))
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	w.stop(ctx, t)
}
