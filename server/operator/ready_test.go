package operator

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
)

// Readiness of a location that serves, but cannot decide alone whether it is ready, is decided by the
// statistics that its secondary reports for its accounts; one that decides itself is left alone, and
// costs no status.
func TestReadyIsDecidedByAllLocations(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	b := over(clock.System{}, north, south)
	north.readiness = wire.LocationReadiness{Name: "north", State: wire.Stopped, Reason: "location north is stopped"}
	require.Equal(t, []wire.LocationReadiness{north.readiness, south.readiness}, b.Ready(t.Context()))
	require.NotContains(t, slices.Concat(north.calls(), south.calls()), "status")

	south.readiness.Ready = false
	lag := 1.0
	for _, c := range []struct {
		services []wire.ServiceStatus
		reason   string
	}{
		{[]wire.ServiceStatus{{Service: "blob", LagSeconds: &lag}}, ""},
		{[]wire.ServiceStatus{{Service: "blob"}}, "Last Sync Time of photos (blob) is not known yet"},
		{nil, "Last Sync Time of photos is not known yet"},
	} {
		south.status.Accounts = []wire.AccountStatus{{Account: photos().Account, Services: c.services}}
		ready := b.Ready(t.Context())
		require.Equal(t, north.readiness, ready[0])
		require.Equal(t, c.reason, ready[1].Reason)
		require.Equal(t, c.reason == "", ready[1].Ready)
	}
	south.fail = errors.New("disk on fire")
	ready := b.Ready(t.Context())
	require.False(t, ready[1].Ready)
	require.Equal(t, "location south: disk on fire", ready[1].Reason)
}

// What else keeps a location from being ready does so to that one alone, and does not hide why it is not.
func TestReadyWaitsForWhatElse(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	b := over(clock.System{}, north, south)
	why := map[geo.Location]string{"north": "its level is not active"}
	b.o.NotReady = func(l geo.Location) string { return why[l] }
	wants := north.readiness
	wants.Ready, wants.Reason = false, "its level is not active"
	require.Equal(t, []wire.LocationReadiness{wants, south.readiness}, b.Ready(t.Context()))
	north.readiness.Ready, north.readiness.Reason = false, "the blob range has no leader yet"
	require.Equal(t, []wire.LocationReadiness{north.readiness, south.readiness}, b.Ready(t.Context()))
	delete(why, "north")
	north.readiness = wire.LocationReadiness{Name: "north", Ready: true, Serving: true}
	require.Equal(t, []wire.LocationReadiness{north.readiness, south.readiness}, b.Ready(t.Context()))
}
