package api

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// How long an upload may take grows with what its header announces, up to the longest
// body there is, and never overflows.
func TestUploadLimit(t *testing.T) {
	for length, want := range map[int64]time.Duration{
		0: requestMax, 1: requestMax, 1 << 20: putPerMiB, 1 << 44: 5000 * putPerMiB, math.MaxInt64: 5000 * putPerMiB,
	} {
		r := httptest.NewRequest(http.MethodPut, "/c/b", nil)
		r.ContentLength = length
		x := &exchange{r: r, service: geo.Blob}
		require.InDelta(t, want.Seconds(), x.limit().Seconds(), 10, length)
	}
}
