package directory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/planned"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
)

// R19: a move is begun and stops writes only where the other location has answered within the last second, and is offered
// only then. Without an answer for two seconds the writes go on.
//
// Capability: Two locations: A planned failover stops no healthy primary over a silent link (R19).
// Capability: Two locations: Changes of a redundancy.
func TestR19MoveNeedsAnswers(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	now := clock.NewManual(time.Now())
	b.north.SetPace(now, 0)
	made, err := b.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	b.ship(t, "acct")
	phase := func() catalog.MovePhase {
		_, _ = b.north.Resume(t.Context())
		a, err := b.north.Account(t.Context(), "acct")
		require.NoError(t, err)
		require.Equal(t, made.GeoEpoch(), a.GeoEpoch())
		if a.Operation == nil {
			return ""
		}
		return a.Operation.Move.Phase
	}

	b.cut = true
	_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
	requireCode(t, storageerr.ServerBusy, err)
	require.ErrorContains(t, err, "south does not answer: the link is cut; nothing was changed")
	require.Empty(t, phase())

	move := func() {
		t.Helper()
		now.Advance(time.Second)
		b.cut = false
		_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
		require.NoError(t, err)
		b.ship(t, "acct")
	}
	closing := func() {
		t.Helper()
		require.Equal(t, catalog.MoveClosing, phase())
	}
	move()
	b.cut = true
	now.Advance(time.Second)
	require.Equal(t, catalog.MoveDraining, phase(), "writes go on where the other location does not answer")
	b.cut = false
	now.Advance(time.Second)
	closing()
	require.False(t, b.stamps["north"].Leader(geo.FirstRange(geo.Catalog)).Machine.Gate("acct").Open)

	b.ship(t, "acct") // All is acknowledged; that it was proves nothing of now.
	b.cut = true
	now.Advance(time.Second)
	closing()
	now.Advance(2*time.Second - 1)
	closing()
	now.Advance(time.Second)
	require.Equal(t, catalog.MoveEnding, phase())
	ending, err := b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.Equal(t, "south does not answer: the link is cut", ending.Operation.Move.Reason)
	require.Empty(t, phase())
	for _, s := range every {
		gate := b.stamps["north"].Leader(geo.FirstRange(s)).Machine.Gate("acct")
		require.True(t, gate.Open && gate.Role == change.RolePrimary, "%s", s)
	}

	move()
	closing()
	b.ship(t, "acct")
	b.cut = true // An answer of this second suffices.
	now.Advance(time.Second - 1)
	require.Equal(t, catalog.MoveOffered, phase())
}

// R19: an account whose record does not arrive at the other location, and a caller that does not wait for the answer, say
// nothing of the other location: the moves of other accounts go on.
//
// Capability: Two locations: A planned failover stops no healthy primary over a silent link (R19).
// Capability: Two locations: Changes of a redundancy.
func TestR19AnswersAreOfTheLocation(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	now := clock.NewManual(time.Now())
	b.north.SetPace(now, 0)
	for _, name := range []geo.Account{"acct", "behind"} {
		_, err := b.north.Create(t.Context(), name, nil, nil)
		require.NoError(t, err)
		b.ship(t, name)
	}
	_, _, err := b.north.SetWhenLate(t.Context(), "behind", catalog.LateRefuse)
	require.NoError(t, err)
	_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
	require.NoError(t, err)
	b.ship(t, "acct")

	now.Advance(time.Second)
	require.NoError(t, b.north.Mover().CheckMove(t.Context(), "behind"))
	now.Advance(time.Second)
	gone, leave := context.WithCancel(t.Context())
	b.onCall = leave
	require.Error(t, b.north.Mover().CheckMove(gone, "behind"))
	require.Error(t, gone.Err())
	b.onCall = nil
	_, _ = b.north.Resume(t.Context())
	a, err := b.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	require.NotNil(t, a.Operation)
	require.Equal(t, catalog.MoveClosing, a.Operation.Move.Phase)
}

// severed is another location to which an operator cut the link.
type severed struct {
	directory.Peer
	err error
}

func (s severed) Announce(context.Context, catalog.Account) error { return s.err }

// R19: where an operator cut the link, at whichever end, a move is refused with the command that heals it: the other location
// runs, so its status would show nothing.
//
// Capability: Two locations: Changes of a redundancy.
func TestR19CutLinkIsNamed(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	now := clock.NewManual(time.Now())
	b.north.SetPace(now, 0)
	_, err := b.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	b.ship(t, "acct")
	for _, cut := range []error{fmt.Errorf("directory.Announce: %w", link.ErrCut), errors.New("south: link between the locations is cut")} {
		b.north.SetPeer(severed{err: cut})
		now.Advance(time.Second)
		_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
		requireCode(t, storageerr.ServerBusy, err)
		require.ErrorContains(t, err, "south is not reached, since an operator cut the link (antipodectl link heal); nothing was changed")
	}
	for _, late := range []error{context.DeadlineExceeded, errors.New("south: context deadline exceeded: it may have happened")} {
		b.north.SetPeer(severed{err: late})
		now.Advance(time.Second)
		_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
		require.ErrorContains(t, err, "south does not answer in time; nothing was changed")
	}
	b.north.SetPeer(severed{err: errors.New("directory.Announce: south: directory.Announce: refused")})
	now.Advance(time.Second)
	_, err = b.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
	require.ErrorContains(t, err, "south does not answer: refused; nothing was changed")
}
