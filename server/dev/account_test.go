package dev

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// A start waits for ranges without a quorum however long they are without one, says which,
// and makes the account when they are back: checked with two nodes of three stopped.
func TestEnsureAccountWaits(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	stamp := runningStamp(c.locations[North])
	require.Empty(t, c.Waiting(t.Context()))
	require.NoError(t, stamp.Stop(2, true))
	require.NoError(t, stamp.Stop(3, true))
	_, err := c.locations[North].Directory.Create(t.Context(), "late", key64, key64)
	require.True(t, record.Passing(err), "%v", err)
	require.NotErrorIs(t, err, storageerr.AccountAlreadyExists)

	made := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { made <- c.EnsureAccount(ctx, North, "late", key64, key64) }()
	eventually(t, "a step failed and is tried again", func() bool { return c.step.Load() != nil })
	require.Contains(t, c.Waiting(t.Context()), string(North)+": the catalog range ")
	r := c.locations[North].Readiness(t.Context())
	require.False(t, r.Serving || r.Ready)
	require.Len(t, made, 0)

	require.NoError(t, stamp.Start(2))
	require.NoError(t, <-made)
	eventually(t, "it serves", func() bool { return c.locations[North].Readiness(t.Context()).Serving })
	_, err = c.WaitLive(ctx, "late")
	require.NoError(t, err)

	gone, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, clock.Wait(gone, time.Hour), context.Canceled)
}

// halfway is a peer at which a creation of an account stops: it reserves, and then the caller
// is gone, in whose name gates were on their way.
type halfway struct {
	directory.Peer
	gone context.CancelFunc
}

// Reserve implements directory.Peer.
func (h halfway) Reserve(ctx context.Context, a catalog.Account) error {
	defer h.gone()
	return h.Peer.Reserve(ctx, a)
}

// A creation that stopped half way goes on when the account is asked for again: with its own
// keys, or with those that are given then. Keys that are given work at both locations, or
// the refusal names which do not.
func TestCreationResumes(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	north, south := c.locations[North], c.locations[South]
	other := append([]byte("other"), key64...)
	third := append([]byte("third"), key64...)
	peer := linkedDirectory{c.link, south}
	half := func(name geo.Account, key1, key2 []byte, cut bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if cut {
			c.link.Cut()
			defer c.link.Heal()
		}
		north.Directory.SetPeer(halfway{peer, cancel})
		_, err := north.Directory.Create(ctx, name, key1, key2)
		require.True(t, record.Passing(err), "%v", err)
		north.Directory.SetPeer(peer)
		_, err = north.Directory.Account(t.Context(), name)
		require.ErrorIs(t, err, storageerr.AccountNotFound)
	}
	has := func(name geo.Account, key1, key2 []byte) {
		t.Helper()
		_, err := c.WaitLive(t.Context(), name)
		require.NoError(t, err)
		for _, l := range []geo.Location{North, South} {
			eventually(t, "the keys are at "+string(l), func() bool {
				a, err := c.locations[l].Directory.Account(t.Context(), name)
				return err == nil && string(a.Key1) == string(key1) && string(a.Key2) == string(key2)
			})
		}
	}
	for name, cut := range map[geo.Account]bool{"unreserved": true, "reserved": false} {
		half(name, key64, key64, cut)
		require.NoError(t, c.EnsureAccount(t.Context(), North, name, other, third))
		has(name, other, third)
		half(name+"same", key64, other, cut)
		require.NoError(t, c.EnsureAccount(t.Context(), North, name+"same", key64, nil))
		has(name+"same", key64, other)
	}

	require.NoError(t, c.EnsureAccount(t.Context(), North, "reserved", third, other), "in either order")
	require.NoError(t, c.EnsureAccount(t.Context(), North, "reserved", other, other), "one of them")
	err := c.EnsureAccount(t.Context(), North, "reserved", other, key64)
	require.ErrorContains(t, err, "account reserved exists and does not take the given key2;")
	err = c.EnsureAccount(t.Context(), North, "reserved", key64, key64)
	require.ErrorContains(t, err, "does not take the given key1;")
	require.False(t, record.Passing(err), "it ends a start")
	require.NoError(t, c.EnsureAccount(t.Context(), North, "southacct", key64, key64), "its primary is in the south")
	_, err = north.Directory.Create(t.Context(), "reserved", other, third)
	require.ErrorIs(t, err, storageerr.AccountAlreadyExists)
}
