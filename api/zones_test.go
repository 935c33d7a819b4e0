package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/geo"
)

// A request signed for the account in its path is served as that, whatever name that is no account's it is sent to: the
// signature covers the same bytes as one for an account in the name, so only the configured zones distinguish the two.
func TestForeignHostIsPathStyle(t *testing.T) {
	t.Parallel()
	const zone = "storage.example"
	hosts := []string{"acct.table.evil", "store.queue.svc", "acct.blob.evil.storage.example", "antipode"}
	south := startFrontEnd(t, api.Options{Location: "south", Zones: []geo.Zone{zone, geo.LocalZone}, Hosts: hosts})
	ask := func(host string) answer {
		r := signed(t, http.MethodGet, south.url+statsTarget, nil)
		r.Host = host
		return send(t, r)
	}
	for _, host := range append(hosts, "127.0.0.1:10002", "storage.example", "localhost:1", "[::1]:9", "203.0.113.7", "Antipode.:10002") {
		require.Equal(t, http.StatusOK, ask(host).status, host)
	}
	// Under a zone of ours the same bytes address the primary of the account in the name.
	for _, host := range []string{"acct.table.storage.example", "ACCT.Table.Storage.Example.:443", "acct.table.localhost:10002"} {
		a := ask(host)
		require.Equal(t, http.StatusServiceUnavailable, a.status, host)
		require.Contains(t, a.body, "cannot be reached now")
	}
}
