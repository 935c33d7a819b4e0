// Package stamptest gives tests of the floors above a stamp of three nodes in memory, and
// the commands that set up its state.
package stamptest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// New starts the stamp of a location and waits until the first ranges of the services lead.
// It closes no range by time, and ends with the test.
func New(t testing.TB, l geo.Location, services ...geo.Service) *stamp.Stamp {
	t.Helper()
	return NewAt(t, new(clock.Runtime), l, services...)
}

// NewAt is New with a clock, the same for all nodes. Its monotonic time must be the runtime's, as timers are.
func NewAt(t testing.TB, c clock.Clock, l geo.Location, services ...geo.Service) *stamp.Stamp {
	t.Helper()
	return NewOn(t, state.Options{FS: vfs.NewMem()}, c, l, services...)
}

// NewOn is NewAt with a file system and caches, which all nodes share.
func NewOn(t testing.TB, on state.Options, c clock.Clock, l geo.Location, services ...geo.Service) *stamp.Stamp {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	on.LogSegmentBytes, on.Logger = 1<<20, quiet
	s := stamp.New(node.Options{
		Location: l, Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: c, Transport: memtransport.New(),
		// Two seconds: on a starved machine a leader is deposed after less, and tests hold on to one leader.
		Tick: 20 * time.Millisecond, ElectionTicks: 100, InSyncTimeout: time.Minute, Seed: 1,
		State: on, Logger: quiet,
	})
	for _, id := range s.Nodes() {
		require.NoError(t, s.Start(id))
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, service := range services {
		Submit(t, s, s.Route().Service(service)[0].ID, nothing{})
	}
	return s
}

// Submit commits a command whose effect is the same when it is done twice.
func Submit(t testing.TB, s ranges.Submitter, r geo.RangeID, cmd ranges.Command) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := s.Submit(ctx, r, cmd)
	for errors.Is(err, kv.ErrUnknown) || errors.Is(err, kv.ErrBusy) { // On a busy machine the first leader may be deposed.
		err = s.Submit(ctx, r, cmd)
	}
	require.NoError(t, err)
}

type nothing struct{}

func (nothing) Evaluate(*ranges.Tx) error { return nil }

// Gate sets the gate of an account in a range.
type Gate struct {
	Account geo.Account
	Gate    change.Gate
}

// Evaluate implements ranges.Command.
func (g Gate) Evaluate(tx *ranges.Tx) error {
	tx.SetGate(g.Account, g.Gate)
	return nil
}

// Change changes a partition under the account's gate, as package primary does after its
// checks.
type Change struct {
	Partition keys.Partition
	Record    change.Record
}

// Evaluate implements ranges.Command.
func (c Change) Evaluate(tx *ranges.Tx) error {
	c.Record.CommitTime, c.Record.Partition = tx.Timestamp(0), c.Partition.Append(nil)
	return tx.Change(c.Partition, c.Record)
}

// Compared commits that the gates of a range were compared under an incarnation. Of a range that was never recovered
// any but the zero value makes one that is not compared.
type Compared struct{ As geo.Incarnation }

// Evaluate implements ranges.Command.
func (c Compared) Evaluate(tx *ranges.Tx) error {
	tx.Compared(c.As)
	return nil
}

// CompareHere commits that the gates of a range are compared, if it leads in this stamp and was recovered with loss. A
// stamp without a directory has no catalog to compare them with, and takes no change before.
func CompareHere(ctx context.Context, s *stamp.Stamp, id geo.RangeID) error {
	r := s.Leader(id)
	if r == nil || !r.Machine.Uncompared() {
		return nil
	}
	return s.Submit(ctx, id, Compared{r.Machine.Incarnation()})
}

// Closed commits a closed time.
type Closed struct{}

// Evaluate implements ranges.Command.
func (Closed) Evaluate(tx *ranges.Tx) error {
	tx.Closed()
	return nil
}
