package dev

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/server/notices"
)

// A receiver gets the steps of a failover of a cluster from both locations, signed.
//
// Capability: Failover: Notices of failovers.
func TestNoticesOfAFailover(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	kinds := map[string]bool{}
	key := []byte("key")
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var n notices.Notice
		if err != nil || json.Unmarshal(body, &n) != nil || r.Header.Get(notices.SignatureHeader) != notices.Signature(key, body) {
			http.Error(w, "no notice", http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		kinds[string(n.Event.Location)+" "+n.Event.Kind+" "+string(n.Event.Account)] = true
	}))
	t.Cleanup(receiver.Close)
	c := startWith(t, ClusterOptions{Notices: notices.Options{URL: receiver.URL, Key: key}})
	_, err := adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverPlanned}})
	require.NoError(t, err)
	eventually(t, "the receiver has the steps", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return kinds[string(North)+" failover-begun northacct"] && kinds[string(South)+" failover-taken northacct"]
	})
}
