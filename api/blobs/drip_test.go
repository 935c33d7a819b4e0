package blobs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/services/blobs"
)

// Sources elsewhere that drip a byte a second take all the memory that their account has for bodies. An upload of the account
// gets it long before the bound of a stall ends them: the slowest are refused, as slow clients are, and say why.
func TestDrippingSourcesGiveWay(t *testing.T) {
	t.Parallel()
	const sources = 64 // Twice as many as the account has chunks in memory.
	r := newRig(t, nil)
	var dripping atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		dripping.Add(1)
		w.Header().Set("Content-Length", strconv.Itoa(4*blobs.ChunkBytesMax))
		for {
			if _, err := w.Write([]byte("x")); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-hr.Context().Done():
				return
			case <-time.After(time.Second):
			}
		}
	}))
	var copies sync.WaitGroup
	refused := make([]answer, sources)
	for i := range sources {
		copies.Go(func() {
			refused[i], _ = r.try(http.MethodPut, fmt.Sprintf("/cont/b%d?comp=block&blockid=AA==", i), http.NoBody, "x-ms-copy-source", server.URL)
		})
	}
	share := r.handler.inFlight.Of("acct")
	require.Eventually(t, func() bool {
		held, ok := share.TryAdmit(blobs.ChunkBytesMax)
		share.Release(held)
		return !ok && dripping.Load() == sources
	}, time.Minute, time.Millisecond)
	began := time.Now()
	body := content(2*blobs.ChunkBytesMax+1, 1)
	require.Equal(t, http.StatusCreated, r.put("/cont/upload", body).status)
	require.Less(t, time.Since(began), r.handler.sourceStall/2)
	r.requireBlob("/cont/upload", body)

	server.CloseClientConnections() // The others would drip on.
	copies.Wait()
	server.Close()
	gave := 0
	for _, a := range refused {
		if a.status == http.StatusServiceUnavailable {
			require.Equal(t, "ServerBusy", a.code(t))
			require.Contains(t, string(a.body), "copy source")
			gave++
			continue
		}
		r.requireCode(a, http.StatusInternalServerError, "CannotVerifyCopySource")
	}
	require.Positive(t, gave)
	held, ok := share.TryAdmit(32 << 20)
	require.True(t, ok, "not all is given back")
	share.Release(held)
}
