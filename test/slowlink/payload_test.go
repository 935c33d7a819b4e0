package slowlink

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/faults/rig"
	"antipode/test/rest"
)

// While large blobs are put over a line that takes much longer for them than for everything else, small records
// keep their lag: the line carries both. Every blob arrives, and its payload crosses once.
func TestBigPayloads(t *testing.T) {
	const (
		perSecond = 4 << 20
		container = "big"
	)
	blobBytes := 12 << 20
	if strict() {
		blobBytes = 64 << 20
	}
	r := start(t)
	ctx := t.Context()
	w := begin(t, r)
	out := r.RateFrom(rig.North)
	require.NoError(t, w.Primary.CreateContainer(ctx, container))
	out.Set(perSecond)
	rig.Pause(ctx, min(*duration, warm))
	before, began := out.Carried(), time.Now()
	quiet, _ := watch(ctx, t, r, max(*duration/2, 3*time.Second))
	need := float64(out.Carried()-before) / time.Since(began).Seconds()
	t.Logf("quiet: %.0f bytes/s of %d, lag %v", need, perSecond, quiet)
	blobs := 1 + int(duration.Seconds()*perSecond/2)/blobBytes
	w.cutWrites()
	before, began = out.Carried(), time.Now()
	var put sync.WaitGroup
	var putErr error
	var arrived time.Duration
	watching, stop := context.WithCancel(ctx)
	put.Go(func() {
		defer stop()
		body := make([]byte, blobBytes)
		for i := range blobs {
			a, err := w.Primary.PutBlob(ctx, container, fmt.Sprint(i), body)
			if err == nil && !a.OK() {
				err = fmt.Errorf("blob %d: %v", i, a)
			}
			if err != nil {
				putErr = err
				return
			}
		}
		for i := range blobs {
			for {
				a, err := w.Secondary.Do(ctx, geo.Blob, rest.Request{Method: http.MethodHead, Path: fmt.Sprintf("/%s/%d", container, i)})
				if err == nil && a.OK() {
					break
				}
				if putErr = ctx.Err(); putErr != nil || time.Since(began) > readyWait {
					return
				}
				rig.Pause(ctx, poll)
			}
		}
		arrived = time.Since(began)
	})
	big, memory := watch(watching, t, r, readyWait)
	put.Wait()
	require.NoError(t, putErr)
	require.NotZero(t, arrived, "the blobs do not arrive: lag %v", big)
	crossed := float64(out.Carried()-before) - need*arrived.Seconds()
	took, failed := w.cutWrites()
	t.Logf("%d blobs of %d MiB: at the secondary after %v; %.2f times their bytes have crossed", blobs, blobBytes>>20,
		arrived.Round(time.Millisecond), crossed/float64(blobs*blobBytes))
	t.Logf("meanwhile: lag %v; writes p50 %v p99 %v most %v; memory at first, and growth in MiB:%v", big,
		quantile(took, .5), quantile(took, .99), quantile(took, 1), memory)
	require.Empty(t, failed)
	if strict() {
		tables := geo.Table.String()
		require.LessOrEqual(t, quantile(big.of[tables], .5), 2*quantile(quiet.of[tables], .5))
		require.LessOrEqual(t, quantile(big.of[tables], .99), 2*quantile(quiet.of[tables], .99))
	}
	out.Set(0)
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	w.stop(ctx, t)
}
