package location

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/blobs"
	"antipode/services/catalog"
)

// What becomes of writes follows from the account's policy and the age of its oldest change: no policy holds a write
// before half of the target, and only refuse stops one, past the target.
//
// Capability: Two locations: An account may slow or refuse its writes while changes are late.
func TestHold(t *testing.T) {
	t.Parallel()
	const target = 100 * time.Second
	for _, c := range []struct {
		policy catalog.WhenLate
		age    time.Duration
		want   *primary.Late
	}{
		{catalog.LateAlert, time.Hour, nil},
		{catalog.LateSlow, 0, nil},
		{catalog.LateSlow, 50 * time.Second, nil},
		{catalog.LateSlow, 75 * time.Second, &primary.Late{Delay: 500 * time.Millisecond}},
		{catalog.LateSlow, target, &primary.Late{Delay: time.Second}},
		{catalog.LateSlow, time.Hour, &primary.Late{Delay: slowMax}},
		{catalog.LateRefuse, target, nil},
		{catalog.LateRefuse, target + 1, &primary.Late{Refuse: true}},
	} {
		held := map[primary.Written]primary.Late{}
		hold(held, &catalog.Account{Name: "acct", WhenLate: c.policy}, geo.Blob, c.age, target)
		if c.want == nil {
			require.Empty(t, held, "%s after %s", c.policy, c.age)
			continue
		}
		require.Equal(t, map[primary.Written]primary.Late{{Account: "acct", Service: geo.Blob}: *c.want}, held, "%s after %s", c.policy, c.age)
	}
	// A service has the delay of its range with the oldest change.
	held := map[primary.Written]primary.Late{}
	for _, age := range []time.Duration{75 * time.Second, target, 75 * time.Second} {
		hold(held, &catalog.Account{Name: "acct", WhenLate: catalog.LateSlow}, geo.Blob, age, target)
	}
	require.Equal(t, time.Second, held[primary.Written{Account: "acct", Service: geo.Blob}].Delay)
}

// The changes of an account whose copy has not begun are in no outbox, and wait since the bootstrap has begun: as long as
// the secondary does not answer, such an account is late like any other.
//
// Capability: Two locations: An account may slow or refuse its writes while changes are late.
func TestLateBeforeTheCopy(t *testing.T) {
	t.Parallel()
	outbox := map[geo.Account]geo.Timestamp{"acct": 7}
	for _, c := range []struct {
		operation *catalog.Operation
		want      geo.Timestamp
	}{
		{nil, 7},
		{&catalog.Operation{Kind: catalog.OperationBootstrap, After: 5}, 5},
		{&catalog.Operation{Kind: catalog.OperationBootstrap, After: 5, Copying: true}, 7},
	} {
		a := &catalog.Account{Name: "acct", Redundancy: catalog.GRS, Operation: c.operation}
		at, waits := oldestOf(a, outbox)
		require.True(t, waits)
		require.Equal(t, c.want, at)
		a.Name = "other"
		_, waits = oldestOf(a, outbox)
		require.Equal(t, c.want == 5, waits)
	}
}

// A location that starts again has looked at no outbox: what it knew before holds no write.
//
// Capability: Two locations: An account may slow or refuse its writes while changes are late.
func TestLateAfterARestart(t *testing.T) {
	t.Parallel()
	l := New(Options{Name: "north", Other: "south", Nodes: []geo.NodeID{1}, Local: []geo.NodeID{1}, Clock: clock.System{}})
	l.watching.lateAt = l.o.Clock.Mono() + time.Hour // It is not due to look.
	l.Primary.SetLate(map[primary.Written]primary.Late{{Account: "acct", Service: geo.Blob}: {Refuse: true}}, l.o.OnHeld)
	write := func() error {
		return l.Primary.Write(t.Context(), &blobs.PutBlock{Command: blobs.Command{Name: blobs.Name{Account: "acct", Container: "c", Blob: "b"}}})
	}
	require.ErrorIs(t, write(), primary.ErrLate)
	l.watching.start()
	defer l.watching.stop()
	require.ErrorIs(t, write(), ErrStopped)
}

// R18: an outbox that cannot be read hides nothing of the others: they go on being looked at, and what was known of
// its own service stays, since nothing of it is known to have arrived.
func TestR18UnreadableBacklogHidesNoOther(t *testing.T) {
	t.Parallel()
	l := New(Options{Name: "north", Other: "south", Nodes: []geo.NodeID{1}, Local: []geo.NodeID{1}, Clock: clock.System{}, RPOTarget: time.Minute})
	accounts := []*catalog.Account{
		{Name: "a", Primary: "north", Secondary: "south", Redundancy: catalog.GRS, WhenLate: catalog.LateRefuse},
		{Name: "theirs", Primary: "south", Secondary: "north", Redundancy: catalog.GRS, WhenLate: catalog.LateRefuse},
	}
	now := time.Unix(1e9, 0)
	late := map[geo.Account]geo.Timestamp{"a": geo.TimestampOf(now.Add(-2 * time.Minute)), "theirs": 1}
	held := func(services ...geo.Service) map[primary.Written]primary.Late {
		out := map[primary.Written]primary.Late{}
		for _, s := range services {
			out[primary.Written{Account: "a", Service: s}] = primary.Late{Refuse: true}
		}
		return out
	}
	table, blob := serviceKey{"a", geo.Table}, serviceKey{"a", geo.Blob}
	unread := errors.New("disk")
	one := l.lateNow(accounts, []lateOutbox{{service: geo.Table, oldest: late}, {service: geo.Blob}}, lately{}, now)
	require.Equal(t, held(geo.Table), one.hold)
	require.Len(t, one.found, 2)
	require.NotEmpty(t, one.found[table])
	require.Empty(t, one.found[blob])
	for range 2 {
		one = l.lateNow(accounts, []lateOutbox{{service: geo.Table, err: unread}, {service: geo.Blob, oldest: late}}, one, now)
		require.Equal(t, held(geo.Table, geo.Blob), one.hold)
		require.NotEmpty(t, one.found[table])
		require.NotEmpty(t, one.found[blob])
	}
	one = l.lateNow(accounts, []lateOutbox{{service: geo.Table}, {service: geo.Blob}}, one, now)
	require.Empty(t, one.hold)
	require.Equal(t, map[serviceKey]string{table: "", blob: ""}, one.found)
}

// R18: what a single look shows holds no write: after a clock jumped ahead, what is under way is old until the next one.
func TestR18OneLookHoldsNoWrite(t *testing.T) {
	t.Parallel()
	l := New(Options{Name: "north", Other: "south", Nodes: []geo.NodeID{1}, Local: []geo.NodeID{1}, Clock: clock.System{}, RPOTarget: time.Minute})
	w, now := &l.watching, time.Unix(1e9, 0)
	w.accounts = []*catalog.Account{{Name: "a", Primary: "north", Secondary: "south", Redundancy: catalog.GRS, WhenLate: catalog.LateRefuse}}
	write := func() error {
		return l.Primary.Write(t.Context(), &blobs.PutBlock{Command: blobs.Command{Name: blobs.Name{Account: "a", Container: "c", Blob: "b"}}})
	}
	look := func(age time.Duration) {
		w.takeLate([]lateOutbox{{service: geo.Blob, oldest: map[geo.Account]geo.Timestamp{"a": geo.TimestampOf(now.Add(-age))}}}, now)
	}
	for range 2 {
		look(time.Hour)
		require.ErrorIs(t, write(), ErrStopped, "it is not held")
		look(time.Hour)
		require.ErrorIs(t, write(), primary.ErrLate)
		look(time.Second)
		require.ErrorIs(t, write(), ErrStopped, "one look ends it")
	}
}
