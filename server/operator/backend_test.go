package operator

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
)

// photos is an account that both locations know, as the port shows it.
func photos() wire.AccountInfo {
	return wire.AccountInfo{
		Account: wire.Account{Name: "photos", Redundancy: "RA-GRS", Primary: "north", Secondary: "south"},
		Endpoints: []wire.Endpoint{
			{Service: "blob", Primary: "http://blob.example/photos", Secondary: "http://blob.example/photos-secondary"},
			{Service: "queue", Primary: "http://queue.example/photos", Secondary: "http://queue.example/photos-secondary"},
			{Service: "table", Primary: "http://table.example/photos", Secondary: "http://table.example/photos-secondary"},
		},
	}
}

// backends returns the two kinds of backends over the same locations: one that runs them, and one
// that reaches them through their nodes, of which the first is away.
func backends(t *testing.T, locations ...*fake) map[string]*Backend {
	t.Helper()
	nodes := newNetwork(t)
	var here, remote []Location
	for _, l := range locations {
		nodes.answers(l, 2)
		here, remote = append(here, l), append(remote, nodes.remote(l.name))
	}
	return map[string]*Backend{"here": over(clock.System{}, here...), "through nodes": over(clock.System{}, remote...)}
}

// An operation is carried out by the location that it is for, once, with its arguments; an operation
// on the link by both (table).
func TestOperationsReachTheirLocation(t *testing.T) {
	recovered := wire.RangeRecovered{Location: "north", Range: 4, Survivor: "a", SilentNodes: []string{"b"}}
	for _, c := range []struct {
		operate      func(ctx context.Context, b *Backend) (any, error)
		want         any
		north, south string
	}{
		{func(ctx context.Context, b *Backend) (any, error) {
			return Do(ctx, b, wire.CallStartNode, wire.At{Node: "south-2"}, wire.None{})
		}, wire.Changed{Name: "south-2", State: wire.Running}, "", "start node south-2"},
		{func(ctx context.Context, b *Backend) (any, error) {
			return Do(ctx, b, wire.CallStopNode, wire.At{Node: "north-2"}, wire.None{})
		}, wire.Changed{Name: "north-2", State: wire.Stopped}, "stop node north-2", ""},
		{func(ctx context.Context, b *Backend) (any, error) {
			return Do(ctx, b, wire.CallStartLocation, wire.At{Location: "north"}, wire.None{})
		}, wire.Changed{Name: "north", State: wire.Running}, "start", ""},
		{func(ctx context.Context, b *Backend) (any, error) {
			return Do(ctx, b, wire.CallStopLocation, wire.At{Location: "south"}, wire.None{})
		}, wire.Changed{Name: "south", State: wire.Stopped}, "", "stop"},
		{func(ctx context.Context, b *Backend) (any, error) {
			return Do(ctx, b, wire.CallRecoverRange, wire.At{Location: "north", Range: 4}, wire.RecoverRange{AcceptLoss: true, Untrusted: true, WithoutPair: true})
		}, recovered, "recover range 4 {AcceptLoss:true Untrusted:true WithoutPair:true DryRun:false}", ""},
		{func(ctx context.Context, b *Backend) (any, error) {
			return Do(ctx, b, wire.CallRaiseLevels, wire.At{Location: "south"}, wire.Levels{Floor: 3, Active: 2})
		}, wire.Levels{Floor: 3, Active: 2}, "", "raise levels to 3 2"},
		{func(ctx context.Context, b *Backend) (any, error) {
			e, err := Do(ctx, b, wire.CallConfirmEpochs, wire.At{Location: "south"}, wire.None{})
			return e.By, err
		}, "override", "", "override epochs"},
		{func(ctx context.Context, b *Backend) (any, error) {
			return Do(ctx, b, wire.CallResume, wire.At{Location: "north"}, wire.StreamName{Account: "mail", Epoch: wire.Epoch{Number: 1, Location: "north"}, Range: 4, Lane: 2})
		}, wire.Resumed{Stream: "mail/1@north/r4/l2", Location: "north", Reason: "version"}, "resume mail/1@north/r4/l2", ""},
		{func(ctx context.Context, b *Backend) (any, error) {
			name := wire.StreamName{Account: "mail", Epoch: wire.Epoch{Number: 1, Location: "north"}, Range: 4, Lane: 2}
			r, err := Do(ctx, b, wire.CallResolve, wire.At{Location: "north"}, wire.ResolveFork{StreamName: name, Keep: "north"})
			return r.State, err
		}, "settling", "resolve mail/1@north/r4/l2 keep north", ""},
		{func(ctx context.Context, b *Backend) (any, error) {
			f, err := Do(ctx, b, wire.CallFound, wire.At{Location: "south"}, wire.FoundQuery{Account: "mail"})
			return len(f.Rows), err
		}, 1, "", "found mail"},
		{func(ctx context.Context, b *Backend) (any, error) {
			p, err := Do(ctx, b, wire.CallFoundPayload, wire.At{Location: "south"}, wire.FoundChunk{Key: "02", Chunk: 1})
			return string(p.Data), err
		}, "data", "", "payload 02 1"},
		{func(ctx context.Context, b *Backend) (any, error) {
			d, err := Do(ctx, b, wire.CallDropFound, wire.At{Location: "south"}, wire.DropFound{Keys: []string{"02"}})
			return d.Dropped, err
		}, 1, "", "drop [02]"},
		{func(ctx context.Context, b *Backend) (any, error) {
			out, err := Do(ctx, b, wire.CallCopyAlone, wire.At{Location: "south"}, wire.AloneQuery{Account: "mail"})
			return out.Rows, err
		}, uint64(7), "", "alone mail"},
		{func(ctx context.Context, b *Backend) (any, error) {
			out, err := Do(ctx, b, wire.CallLost, wire.At{Location: "south"}, wire.LostQuery{Account: "mail"})
			return len(out.Changes), err
		}, 1, "", "lost mail"},
		{func(ctx context.Context, b *Backend) (any, error) {
			d, err := Do(ctx, b, wire.CallDropLost, wire.At{Location: "north"}, wire.DropLost{Account: "mail"})
			return d.Dropped, err
		}, 1, "drop lost mail", ""},
		{func(ctx context.Context, b *Backend) (any, error) {
			a, err := b.CreateAccount(ctx, wire.NewAccount{Name: "mail", Location: "south"})
			return a.Primary, err
		}, geo.Location("south"), "", "create mail"},
		{func(ctx context.Context, b *Backend) (any, error) {
			return nil, b.SetLink(ctx, wire.Link{State: wire.LinkCut})
		}, nil, "link cut", "link cut"},
		{func(ctx context.Context, b *Backend) (any, error) {
			return nil, b.SetLink(ctx, wire.Link{State: wire.LinkDelayed, DelaySeconds: 1.5})
		}, nil, "link delayed 1.5s", "link delayed 1.5s"},
		{func(ctx context.Context, b *Backend) (any, error) {
			return nil, b.SetLink(ctx, wire.Link{State: wire.LinkUp})
		}, nil, "link up", "link up"},
	} {
		north, south := newFake("north"), newFake("south")
		for what, b := range backends(t, north, south) {
			got, err := c.operate(t.Context(), b)
			require.NoError(t, err, what)
			require.Equal(t, c.want, got, what)
			require.Equal(t, c.north, north.operated(), what)
			require.Equal(t, c.south, south.operated(), what)
		}
	}
}

// A location that the process does not serve is refused by name, with those it serves.
func TestUnknownLocation(t *testing.T) {
	for what, b := range backends(t, newFake("north"), newFake("south")) {
		_, err := Do(t.Context(), b, wire.CallStopLocation, wire.At{Location: "east"}, wire.None{})
		require.ErrorContains(t, err, `no location "east" here: this process serves north and south`, what)
		_, err = b.CreateAccount(t.Context(), wire.NewAccount{Name: "photos", Location: "east"})
		row, ours := storageerr.Of(err)
		require.True(t, ours, what)
		require.Equal(t, storageerr.InvalidInput.Code, row.Code, what)
		require.ErrorContains(t, err, `"east"`, what)
	}
}

// The port of one location names a gateway, which shows both.
func TestUnknownLocationOfOne(t *testing.T) {
	for what, b := range backends(t, newFake("north")) {
		_, err := b.failLocationOver(t.Context(), "south", wire.Failover{Type: wire.FailoverPlanned})
		require.ErrorContains(t, err, `there is no location "south" here: this port shows north alone; ask a gateway, which shows both`, what)
	}
}

// One status is made of those of all locations, in their order: a link with a cut end is cut, and the
// services of an account are those that its secondary reports.
func TestStatusMergesLocations(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	for what, b := range backends(t, north, south) {
		table := []wire.ServiceStatus{{Service: "table", Status: wire.Live}}
		north.status.Accounts = []wire.AccountStatus{{Account: photos().Account, Services: []wire.ServiceStatus{}}}
		south.status.Accounts = []wire.AccountStatus{{Account: photos().Account, Services: table}, {Account: wire.Account{Name: "mail"}}}
		north.status.Link, south.status.Link = wire.Link{State: wire.LinkCut}, wire.Link{State: wire.LinkDelayed, DelaySeconds: 1}

		s, err := b.Status(t.Context())
		require.NoError(t, err, what)
		require.Len(t, s.Locations, 2, what)
		require.Equal(t, []geo.Location{"north", "south"}, []geo.Location{s.Locations[0].Name, s.Locations[1].Name}, what)
		require.Equal(t, wire.LinkCut, s.Link.State, what)
		require.Len(t, s.Accounts, 2, what)
		require.Equal(t, table, s.Accounts[0].Services, what)
		require.EqualValues(t, "mail", s.Accounts[1].Name, what)
	}
}

// The ends of the link become one state: a cut outweighs a delay, the longer delay the shorter one,
// whichever end is asked first (table).
func TestMergeLinks(t *testing.T) {
	up, cut := wire.Link{State: wire.LinkUp}, wire.Link{State: wire.LinkCut}
	short, long := wire.Link{State: wire.LinkDelayed, DelaySeconds: 1}, wire.Link{State: wire.LinkDelayed, DelaySeconds: 2}
	for _, c := range []struct{ a, b, want wire.Link }{
		{up, up, up},
		{up, cut, cut},
		{up, short, short},
		{short, cut, cut},
		{short, long, long},
		{up, wire.Link{}, up}, // A process that does not answer.
	} {
		require.Equal(t, c.want, mergeLinks(c.a, c.b))
		if c.b.State != "" {
			require.Equal(t, c.want, mergeLinks(c.b, c.a))
		}
	}
}

// A location runs if one of its processes does, and starts if one of them starts (table).
func TestFurthest(t *testing.T) {
	for _, c := range []struct{ a, b, want wire.State }{
		{wire.Stopped, wire.Running, wire.Running},
		{wire.Running, wire.Stopped, wire.Running},
		{wire.Starting, wire.Running, wire.Running},
		{wire.Stopped, wire.Starting, wire.Starting},
		{wire.Stopped, "", wire.Stopped},
	} {
		require.Equal(t, c.want, furthest(c.a, c.b))
	}
}

// The uptime is counted from the making of the backend.
func TestUptime(t *testing.T) {
	c := clock.NewManual(time.Unix(1e9, 0))
	b := over(c, newFake("north"))
	c.Advance(90 * time.Second)
	s, err := b.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Unix(1e9, 0), s.Process.StartedAt.Time)
	require.Equal(t, 90.0, s.Process.UptimeSeconds)
}

// An error names the location that it comes from; the other location's end of the link is set all the
// same.
//
// Capability: Build and run: A location that is away is named.
func TestErrorsNameTheLocation(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	south.fail = errors.New("disk on fire")
	b := over(clock.System{}, north, south)
	_, err := b.Status(t.Context())
	require.ErrorContains(t, err, "location south: disk on fire")
	north.calls()
	require.EqualError(t, b.SetLink(t.Context(), wire.Link{State: wire.LinkCut}),
		"location south: disk on fire; the end at location north was changed, and is cut")
	require.Equal(t, []string{"link cut"}, north.calls())

	south.fail = &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeNoNodeAnswers, Message: "no node of location south answers"}
	var said *wire.Error
	require.ErrorAs(t, b.SetLink(t.Context(), wire.Link{State: wire.LinkCut}), &said)
	require.Equal(t, wire.CodeNoNodeAnswers, said.Code)
	require.Equal(t, "no node of location south answers; the end at location north was changed, and is cut", said.Message)
}

// Events of all locations are listed; of a location that does not answer they are missing.
//
// Capability: Build and run: A location that is away is named.
func TestEventsOfAllLocations(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	event := func(l geo.Location, number uint64) wire.Event { return wire.Event{Location: l, Number: number} }
	north.events = []wire.Event{event("north", 2), event("north", 1)}
	south.events = []wire.Event{event("south", 7)}
	for what, b := range backends(t, north, south) {
		var got []string
		for _, e := range b.Events(t.Context()).Events {
			got = append(got, string(e.Location))
		}
		require.Equal(t, []string{"north", "north", "south"}, got, what)
	}
	south.fail = errors.New("disk on fire")
	list := over(clock.System{}, north, south).Events(t.Context())
	require.Len(t, list.Events, 2)
	require.Equal(t, []string{"south"}, list.Silent)
}

// An account is listed once if both locations know it, also if one knows it alone or the other does
// not answer. Without any account, a location that does not answer is an error: it may have some.
func TestAccountsOfAllLocations(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	for what, b := range backends(t, north, south) {
		list := func() []geo.Account {
			t.Helper()
			infos, err := b.Accounts(t.Context())
			require.NoError(t, err, what)
			var names []geo.Account
			for _, a := range infos {
				names = append(names, a.Name)
			}
			return names
		}
		north.fail, north.accounts, south.accounts = nil, nil, nil
		require.Empty(t, list(), what)
		north.accounts = []wire.Account{photos().Account}
		south.accounts = []wire.Account{{Name: "mail", Primary: "south"}, photos().Account}
		require.Equal(t, []geo.Account{"photos", "mail"}, list(), what)
		infos, err := b.Accounts(t.Context())
		require.NoError(t, err, what)
		require.Equal(t, photos(), infos[0], what)

		north.fail = storageerr.ServerBusy
		north.accounts = nil
		require.Equal(t, []geo.Account{"mail", "photos"}, list(), what)
		south.accounts = nil
		_, err = b.Accounts(t.Context())
		require.Error(t, err, what)
	}
}

// An account and its keys are those of any location that knows it. That a location does not have the
// account outweighs that another one does not answer.
func TestAccountOfAnyLocation(t *testing.T) {
	for _, knows := range []int{0, 1} {
		locations := []*fake{newFake("north"), newFake("south")}
		for what, b := range backends(t, locations...) {
			l, other := locations[knows], locations[1-knows]
			for _, fail := range []error{nil, storageerr.ServerBusy} {
				l.accounts, other.fail = []wire.Account{photos().Account}, fail
				a, err := b.Account(t.Context(), "photos")
				require.NoError(t, err, what)
				require.Equal(t, photos(), a, what)
				k, err := b.Keys(t.Context(), "photos")
				require.NoError(t, err, what)
				require.Equal(t, "a2V5MQ==", k.Key1, what)

				_, err = b.Account(t.Context(), "mail")
				require.True(t, notFound(err), "%s: %v", what, err)
			}
			other.fail = nil
		}
	}
}

// A location that hangs does not use up the time of the other one: an account is found after a short wait.
func TestAccountBesideALocationThatHangs(t *testing.T) {
	for _, hanging := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			locations := []*fake{newFake("north"), newFake("south")}
			locations[hanging].hangs = true
			locations[1-hanging].accounts = []wire.Account{photos().Account}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			a, err := over(clock.System{}, locations[0], locations[1]).Account(ctx, "photos")
			require.NoError(t, err)
			require.Equal(t, photos(), a)
			require.Equal(t, primaryWait, time.Since(begun), "it may know better")
		})
	}
}

// No question goes on behind the answer: those that are not needed are cut short and waited for.
func TestAccountWaitsForItsQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		knows, slow, ended := newFake("north"), newFake("south"), false
		does(slow.answers, &showAccount, func(ctx context.Context, _ wire.At, _ wire.None) (wire.AccountInfo, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return wire.AccountInfo{}, ctx.Err()
		})
		knows.accounts = []wire.Account{photos().Account}
		a, err := over(clock.System{}, slow, knows).Account(t.Context(), "photos")
		require.NoError(t, err)
		require.Equal(t, photos(), a)
		require.True(t, ended)
	})
}

// What is asked of a node that does not exist, at a location of this process or behind it, or at none, is refused as
// such, and reaches no node.
func TestUnknownNode(t *testing.T) {
	nodes, north := newNetwork(t), newFake("north")
	nodes.answers(north, 1)
	south := &fakePart{running: true}
	local := south.local()
	local.Gather = func() wire.Support { return wire.Support{Name: "this process"} }
	b := New(Options{Locations: []Location{nodes.remote("north"), local}, Clock: clock.System{}})
	known, err := Do(t.Context(), b, wire.CallNodeSupport, wire.At{Node: "south-2"}, wire.None{})
	require.NoError(t, err)
	require.Equal(t, "this process", known.Name)
	for _, l := range []geo.Location{"north", "south", "east"} {
		at := wire.At{Node: wire.NodeName(l, 9)}
		_, support := Do(t.Context(), b, wire.CallNodeSupport, at, wire.None{})
		_, stop := Do(t.Context(), b, wire.CallStopNode, at, wire.None{})
		_, start := Do(t.Context(), b, wire.CallStartNode, at, wire.None{})
		for _, err := range []error{support, stop, start} {
			var said *wire.Error
			require.ErrorAs(t, err, &said, l)
			require.Equal(t, http.StatusNotFound, said.Status, l)
			require.Equal(t, "NodeNotFound", said.Code)
			require.Contains(t, said.Message, string(l)+"-9")
		}
	}
	require.Empty(t, north.calls())
	require.Empty(t, south.asked)
}
