package epochs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/failover/dns"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stamp is a dns.Source with one account.
type stamp struct {
	location geo.Location
	// hangs, if set, holds up every answer until it is closed.
	hangs chan struct{}

	mu    sync.Mutex
	epoch geo.Epoch // guarded by mu; zero while the stamp is away
}

func (s *stamp) Location() geo.Location { return s.location }

func (s *stamp) Names(ctx context.Context, _ string, _ geo.Account) (dns.Page, error) {
	if s.hangs != nil {
		select {
		case <-s.hangs:
		case <-ctx.Done():
			return dns.Page{}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch.IsZero() {
		return dns.Page{}, errors.New("away")
	}
	secondary := geo.Location("south")
	if s.epoch.Location == secondary {
		secondary = "north"
	}
	return dns.Page{Version: s.epoch.String(), Entries: []dns.Entry{{Account: "acct", Epoch: s.epoch, Secondary: secondary, Redundancy: catalog.RAGRS}}}, nil
}

func (s *stamp) is(e geo.Epoch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch = e
}

func follow(t *testing.T, stamps ...*stamp) *Follower {
	o := Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), Every: time.Millisecond}
	for _, s := range stamps {
		o.Sources = append(o.Sources, s)
	}
	f := Follow(o)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

var first, second = geo.Epoch{Number: 1, Location: "north"}, geo.Epoch{Number: 2, Location: "south"}

// The higher epoch of both locations counts, also if the other one, or both, say less later or are away.
//
// Capability: Two locations: Clients of a gateway leave a former primary that does not know it (R20).
func TestFollowsTheHigherEpoch(t *testing.T) {
	north, south := &stamp{location: "north", epoch: first}, &stamp{location: "south", epoch: first}
	f := follow(t, north, south)
	e, secondary := f.Newest(t.Context(), "acct")
	require.Equal(t, first, e)
	require.EqualValues(t, "south", secondary)
	e, secondary = f.Newest(t.Context(), "nobody")
	require.True(t, e.IsZero())
	require.Empty(t, secondary)

	south.is(second)
	require.Eventually(t, func() bool { e, l := f.Newest(t.Context(), "acct"); return e == second && l == "north" }, time.Minute, time.Millisecond)
	for _, then := range []geo.Epoch{first, {}} {
		south.is(then)
		for range 50 {
			e, _ := f.Newest(t.Context(), "acct")
			require.Equal(t, second, e)
			time.Sleep(time.Millisecond)
		}
	}
}

// A new follower has asked both locations before it answers: the second one knows better than the first. One that is away
// holds up nothing.
//
// Capability: Two locations: Clients of a gateway leave a former primary that does not know it (R20).
func TestAsksBothFirst(t *testing.T) {
	north, south := &stamp{location: "north", epoch: first}, &stamp{location: "south", epoch: second, hangs: make(chan struct{})}
	f := follow(t, north, south)
	answered := make(chan geo.Epoch)
	go func() {
		e, _ := f.Newest(context.Background(), "acct")
		answered <- e
	}()
	select {
	case e := <-answered: // The machine was that slow.
		require.Equal(t, first, e)
		return
	case <-time.After(50 * time.Millisecond):
	}
	close(south.hangs)
	require.Equal(t, second, <-answered)

	e, _ := follow(t, &stamp{location: "north", epoch: first}, &stamp{location: "south"}).Newest(t.Context(), "acct")
	require.Equal(t, first, e)
	e, _ = follow(t).Newest(t.Context(), "acct")
	require.True(t, e.IsZero(), "no location has an admin port")
}

// A location that does not answer holds up requests until askedMax, and no longer; a request that ends does not wait.
func TestWaitIsBounded(t *testing.T) {
	f := follow(t, &stamp{location: "north", epoch: first}, &stamp{location: "south", hangs: make(chan struct{})})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f.Newest(ended, "acct")
	require.Eventually(t, func() bool { e, _ := f.Newest(t.Context(), "acct"); return e == first }, time.Minute, time.Millisecond)
}
