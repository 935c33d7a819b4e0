package operation

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// How long an upload may take grows with what its header announces, up to the longest
// body there is, and never overflows.
func TestUploadTime(t *testing.T) {
	for length, want := range map[int64]time.Duration{
		-1: RequestMax, 0: RequestMax, 1: RequestMax, 1 << 20: uploadPerMiB, 1 << 44: 5000 * uploadPerMiB, math.MaxInt64: 5000 * uploadPerMiB,
	} {
		require.InDelta(t, want.Seconds(), Named(geo.Blob, "PutBlob").TimeMax(length).Seconds(), 10, length)
	}
	require.Equal(t, RequestMax, Named(geo.Table, "InsertEntity").TimeMax(4<<20))
}
