package blobs

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/stamptest"
)

// R17: no read at `-secondary` finds nothing where a later epoch has deleted the copy while it was under way, and neither
// does one under the primary's name at a location that was the primary when the read began.
//
// Capability: Blobs: Copies.
func TestR17ReadsOfADeletedCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, http.StatusCreated, r.do(http.MethodPut, "/cont/blob", []byte("data"), "x-ms-blob-type", "BlockBlob").status)
	reads := []string{
		"/?comp=list", "/cont?restype=container", "/cont?restype=container&comp=list", "/cont/blob",
		"/cont/blob?comp=metadata", "/cont/blob?comp=blocklist", "/cont/not",
	}
	status := func(suffix, target string) int { return r.do(http.MethodGet, suffix+target, nil).status }
	for _, target := range reads[:len(reads)-1] {
		require.Equal(t, http.StatusOK, status("-secondary", target), target)
	}
	for _, s := range []geo.Service{geo.Catalog, geo.Blob} {
		gate := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RoleSecondary, Open: true}
		stamptest.Submit(t, r.stamp, geo.FirstRange(s), stamptest.Gate{Account: "acct", Gate: gate})
	}
	for _, target := range reads {
		require.Equal(t, http.StatusServiceUnavailable, status("-secondary", target), target)
		require.Equal(t, http.StatusServiceUnavailable, status("", target), target)
	}
}
