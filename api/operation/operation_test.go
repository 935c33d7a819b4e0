package operation

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
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
	require.Equal(t, 2*time.Minute, Named(geo.Blob, "BlobBatch").TimeMax(-1))
	require.Equal(t, 10*time.Minute, Named(geo.Blob, "CopyBlob").TimeMax(0))
}

// The longest body of an upload is that of the request's version (protocol/blob.md 23).
func TestBodyMax(t *testing.T) {
	for version, want := range map[protocol.Version]int64{
		"2009-09-19": 64 << 20, "2015-12-11": 64 << 20, protocol.Version20160531: 256 << 20, "2019-07-07": 256 << 20,
		protocol.Version20191212: 5000 << 20, protocol.Newest: 5000 << 20,
	} {
		require.Equal(t, want, Named(geo.Blob, "PutBlob").BodyMax(version), version)
	}
	require.Zero(t, Named(geo.Blob, "GetBlob").BodyMax(protocol.Newest))
}
