package ship

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// endStreams ends the streams of an account's former epochs.
type endStreams struct{ account geo.Account }

func (c endStreams) Evaluate(tx *ranges.Tx) error {
	more, err := tx.EndStreams(c.account)
	if more {
		panic("more than one group")
	}
	return err
}

// An account that leaves for a later epoch without numbers has streams that end: what the outbox holds of
// them goes, also of a stopped one, which is stopped no more. A cursor that still comes, below what is
// gone or above it, is answered nothing: it is neither a loss nor a fork. Until the gate of that epoch is
// there nothing ends (R10, R16).
//
// Capability: Two locations: Changes of a redundancy.
func TestR10EndedStreamsDecideNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p", "p", "p", "q")
	p, q := testStream("p"), testStream("q")
	r.requireStopped(StreamCursor{Stream: q, Head: geo.Head{Seq: 9, Hash: 9}}, change.StopForked)
	stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), endStreams{"acct"})
	require.Equal(t, "4 records", r.outbox())

	g := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RolePrimary, Open: true}
	stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), stamptest.Gate{Account: "acct", Gate: g})
	for range 2 {
		stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), endStreams{"acct"})
		require.Equal(t, "0 records", r.outbox())
		require.Empty(t, r.leader().Machine.Stops())
	}
	rec := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}}
	stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), stamptest.Change{Partition: partition("p"), Record: rec})
	require.Equal(t, "0 records", r.outbox(), "LRS changes have no numbers")
	require.EqualValues(t, 3, r.leader().Machine.Head(p).Seq)
	for _, full := range []bool{false, true} {
		for _, c := range []StreamCursor{
			{Stream: p, Head: geo.Head{Seq: 1, Hash: 1}},
			{Stream: p, Head: geo.Head{Seq: 1, Hash: 1}, Below: 3},
			{Stream: p, Head: geo.Head{Seq: 9, Hash: 9}},
			{Stream: q, Stop: change.StopPoison},
		} {
			got, err := r.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{c}, Full: full})
			require.NoError(t, err)
			require.Empty(t, got)
		}
	}
	r.steps()
	require.Empty(t, r.leader().Machine.Stops())
	require.Equal(t, []string{AlarmFork}, r.alarms(), "that of the fork before")
}

// The streams of a former primary have not ended: what the other location has of them is compared as ever (R16).
//
// Capability: Two locations: Forks and losses are durable at the receiver and at the source (R16).
// Capability: Two locations: Disks of a location that were set back cannot make Last Sync Time wrong (R12, R16).
// Capability: Two locations: A fork or a loss is settled by stream, for the primary's side (R16).
func TestR16FormerPrimaryCompares(t *testing.T) {
	t.Parallel()
	r := newRig(t, "p")
	g := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "south"}, Role: change.RoleSecondary, Open: true}
	stamptest.Submit(t, r.stamp, geo.FirstRange(geo.Table), stamptest.Gate{Account: "acct", Gate: g})
	r.requireStopped(StreamCursor{Stream: testStream("p"), Head: geo.Head{Seq: 9, Hash: 9}}, change.StopForked)
}
