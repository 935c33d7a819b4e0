package queues

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/stamptest"
)

// R17: no read at `-secondary` finds nothing where a later epoch has deleted the copy while it was under way, and neither
// does one under the primary's name at a location that was the primary when the read began: first the range of the
// messages has that epoch, then the catalog.
func TestR17ReadsOfADeletedCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/first/messages", "x").status)
	ofMessages := []string{"/first?comp=metadata", "/first/messages?peekonly=true"}
	ofCatalog := []string{"/?comp=list", "/first?comp=acl", "/none?comp=acl"}
	status := func(secondary bool, path string) int {
		r.secondary = secondary
		return r.do(http.MethodGet, path, "").status
	}
	later := func(s geo.Service) {
		gate := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RoleSecondary, Open: true}
		stamptest.Submit(t, r.stamp, geo.FirstRange(s), stamptest.Gate{Account: "acct", Gate: gate})
	}
	for _, secondary := range []bool{true, false} {
		for _, path := range append(ofCatalog[:2:2], ofMessages...) {
			require.Equal(t, http.StatusOK, status(secondary, path), "%s %t", path, secondary)
		}
	}
	later(geo.Queue)
	for _, secondary := range []bool{true, false} {
		for _, path := range ofMessages {
			require.Equal(t, http.StatusServiceUnavailable, status(secondary, path), "%s %t", path, secondary)
		}
		require.Equal(t, http.StatusOK, status(secondary, ofCatalog[1]))
	}
	later(geo.Catalog)
	for _, secondary := range []bool{true, false} {
		for _, path := range append(ofCatalog, ofMessages...) {
			require.Equal(t, http.StatusServiceUnavailable, status(secondary, path), "%s %t", path, secondary)
		}
	}
}
