package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// A location serves when one of its nodes does, whatever became of the others; else the
// reason is that of a node that can know it (table).
func TestServing(t *testing.T) {
	stopped := wire.LocationReadiness{State: wire.Stopped, Reason: "node north-1 is stopped"}
	starting := wire.LocationReadiness{State: wire.Starting, Reason: "its carrier starts"}
	waits := wire.LocationReadiness{State: wire.Running, Reason: "the blob range has no leader yet"}
	serves := wire.LocationReadiness{State: wire.Running, Serving: true, Ready: true}
	for _, c := range []struct {
		nodes  []wire.LocationReadiness
		serves bool
		reason string
	}{
		{nil, false, errNoNode.Message},
		{[]wire.LocationReadiness{stopped, starting, waits, serves}, true, ""},
		{[]wire.LocationReadiness{serves, stopped}, true, ""},
		{[]wire.LocationReadiness{waits, starting, stopped}, false, waits.Reason},
		{[]wire.LocationReadiness{starting, stopped}, false, starting.Reason},
		{[]wire.LocationReadiness{stopped}, false, stopped.Reason},
	} {
		got := serving(c.nodes)
		require.Equal(t, c.serves, got.Serving, "%+v", c.nodes)
		require.Equal(t, c.reason, got.Reason, "%+v", c.nodes)
	}
}
