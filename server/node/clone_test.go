package node

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// The front end asks the others once in cloneHostsFresh, whatever clients ask for.
func TestCloneHostsAreAskedSeldom(t *testing.T) {
	var h cloneHosts
	asked, list, all := 0, []wire.Clone{{Account: "acct", Node: "north-2"}, {Account: "odd", Node: "?"}}, true
	ask := func(context.Context) ([]wire.Clone, bool) { asked++; return list, all }
	now := time.Hour
	of := func(name geo.Account, want geo.NodeID) {
		t.Helper()
		host, err := h.of(name, now, ask)
		require.NoError(t, err)
		require.Equal(t, want, host)
	}
	for range 100 {
		of("acct", 2)
		of("odd", 0)
	}
	require.Equal(t, 1, asked)

	// A process that is slow keeps its clone, and may have others.
	list, all = []wire.Clone{{Account: "new", Node: "north-3"}}, false
	now += cloneHostsFresh
	of("acct", 2)
	of("new", 3)
	_, err := h.of("other", now, ask)
	require.ErrorIs(t, err, errCloneUnknown)
	require.Equal(t, 2, asked)
	list, all = nil, true
	now += cloneHostsFresh
	of("acct", 0)
	of("new", 0)
	require.Equal(t, 3, asked)
}
