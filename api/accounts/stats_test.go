package accounts_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// Get Service Stats answers with the headers and the document of protocol/blob.md 2.2 and S4 and of
// protocol/service.md 3, no more and no fewer, at the secondary endpoint alone and from
// 2013-08-15 on.
func TestStatsAnswers(t *testing.T) {
	r := newRig(t)
	headers := []string{"Content-Length", "Content-Type", "Date", "Server", "X-Ms-Client-Request-Id", "X-Ms-Request-Id", "X-Ms-Version"}
	for _, s := range services {
		for _, version := range []string{"2013-08-15", "2021-12-02", "2026-12-06"} {
			change := set("x-ms-version", version, "x-ms-client-request-id", "client-1")
			resp, body := r.send(s, request{"GET", "/mirror-secondary/?restype=service&comp=stats", change, nil})
			require.Equal(t, http.StatusOK, resp.StatusCode, body)
			require.Equal(t, headers, slices.Sorted(maps.Keys(resp.Header)), "%s %s", s, version)
			require.Equal(t, "application/xml", resp.Header.Get("Content-Type"))
			require.Equal(t, version, resp.Header.Get("x-ms-version"))
			require.Equal(t, `<?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication><Status>unavailable</Status>`+
				`<LastSyncTime></LastSyncTime></GeoReplication></StorageServiceStats>`, body)
		}
		r.refused(s, request{"GET", "/acct/?restype=service&comp=stats", nil, nil}, 400, "InvalidQueryParameterValue")
		if s != geo.Table { // Tables know no older version.
			r.refused(s, request{"GET", "/mirror-secondary/?restype=service&comp=stats", set("x-ms-version", "2012-02-12"), nil}, 400, "InvalidQueryParameterValue")
		}
	}
}
