package tables

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
func TestR17ReadsOfADeletedCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, http.StatusNoContent, r.do(http.MethodPut, "/acct/tbl(PartitionKey='p',RowKey='r')", `{"v":"1"}`).status)
	reads := []string{"/Tables", "/tbl", "/tbl(PartitionKey='p',RowKey='r')", "/tbl(PartitionKey='p',RowKey='not')"}
	status := func(suffix, target string) int { return r.do(http.MethodGet, "/acct"+suffix+target, "").status }
	for _, target := range reads[:3] {
		require.Equal(t, http.StatusOK, status("-secondary", target), target)
	}
	for _, s := range []geo.Service{geo.Catalog, geo.Table} {
		gate := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RoleSecondary, Open: true}
		stamptest.Submit(t, r.stamp, geo.FirstRange(s), stamptest.Gate{Account: "acct", Gate: gate})
	}
	for _, target := range reads {
		require.Equal(t, http.StatusServiceUnavailable, status("-secondary", target), target)
		require.Equal(t, http.StatusServiceUnavailable, status("", target), target)
	}
}
