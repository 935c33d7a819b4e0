package directory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/directory/record/recordtest"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// Any bytes are a gate to set that encodes and decodes to itself, or an error.
func FuzzParseSetGate(f *testing.F) {
	f.Add((&record.SetGate{Account: "acct", Gate: change.Gate{Epoch: geo.Epoch{Number: 3, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := record.ParseSetGate(b)
		if err != nil {
			return
		}
		again, err := record.ParseSetGate(first.Encode())
		require.NoError(t, err)
		require.Equal(t, first, again)
	})
}

// R10, R17: within an epoch a gate opens, then gets numbers, and never goes back: a command that is late would leave
// a hole in the streams. Behind a gate with a time every commit of the range is above it.
func TestR10GateNeverGoesBack(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Table)
	id := geo.FirstRange(geo.Table)
	epoch := func(n geo.EpochNumber) geo.Epoch { return geo.Epoch{Number: n, Location: "north"} }
	gate := func(n geo.EpochNumber, open, numbered bool) change.Gate {
		return change.Gate{Epoch: epoch(n), Role: change.RolePrimary, Open: open, Numbered: numbered}
	}
	set := func(g change.Gate, after geo.Timestamp) {
		stamptest.Submit(t, s, id, &record.SetGate{Account: "acct", Gate: g, After: after})
	}
	for _, step := range []struct{ set, want change.Gate }{
		{gate(2, false, false), gate(2, false, false)},
		{gate(2, true, false), gate(2, true, false)},
		{gate(2, false, false), gate(2, true, false)},
		{gate(2, true, true), gate(2, true, true)},
		{gate(2, true, false), gate(2, true, true)},
		{gate(1, true, false), gate(2, true, true)},
		{gate(3, true, false), gate(3, true, false)},
	} {
		set(step.set, 0)
		require.Equal(t, step.want, s.Leader(id).Machine.Gate("acct"))
	}
	ahead := geo.TimestampOf(time.Now().Add(time.Hour))
	set(gate(4, true, true), ahead)
	for _, n := range s.Nodes() { // Any of them may lead then.
		require.NoError(t, s.Stop(n, true))
		require.NoError(t, s.Start(n))
	}
	p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: "p"}
	at := &stamptest.Change{Partition: p, Record: change.Record{Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r")}}}}
	stamptest.Submit(t, s, id, at)
	require.Greater(t, s.Leader(id).Machine.AppliedState().Last, ahead)
	require.Greater(t, commitTime(t, s.Leader(id), p), ahead)
}

// R3, R17: a range that numbers an account's changes from within an epoch on awaits the image of the epoch, since it has
// rows of the epoch without a number. One that did so from its beginning awaits none.
func TestR17NumbersAwaitTheImage(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Blob)
	id := geo.FirstRange(geo.Blob)
	for a, gates := range map[geo.Account][]change.Gate{
		"first": {{Open: true}, {Open: true, Numbered: true}}, "from": {{Open: true, Numbered: true}},
		"turned": {{Open: true, Numbered: true}, {Numbered: true, Turn: 1}, {Open: true, Numbered: true, Turn: 2}}, // A move that was aborted.
	} {
		for _, g := range gates {
			g.Epoch, g.Role = geo.Epoch{Number: 2, Location: "north"}, change.RolePrimary
			stamptest.Submit(t, s, id, &record.SetGate{Account: a, Gate: g})
		}
		m, err := ranges.ImageIn(s.Leader(id).State(), id, a)
		require.NoError(t, err)
		require.Equal(t, !gates[0].Numbered, ranges.Awaits(m, geo.Epoch{Number: 2, Location: "north"}), a)
	}
}

// commitTime is that of the first record in a partition's stream of epoch 4.
func commitTime(t *testing.T, r *ranges.Range, p keys.Partition) geo.Timestamp {
	st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 4, Location: "north"}, Range: r.ID(), Lane: p.Lane()}
	records, err := r.Machine.Outbox(st, 1, 1<<20)
	require.NoError(t, err)
	require.Len(t, records, 1)
	rec, err := change.ParseRecord(records[0])
	require.NoError(t, err)
	return rec.CommitTime
}

// What a node answers about a name to free is what the caller learns, without the keys (R8).
func TestFreeTravels(t *testing.T) {
	t.Parallel()
	sent := &free{name: "acct"}
	decoded, err := Commands()[sent.Kind()](sent.Encode())
	require.NoError(t, err)
	there := decoded.(*free)
	require.Equal(t, sent, there)
	for _, found := range []*catalog.Account{nil, {Name: "acct", Primary: "north", Epoch: 3, Created: 4, Key1: []byte("k")}} {
		there.found = found
		require.NoError(t, sent.DecodeResult(there.EncodeResult()))
		require.Equal(t, found == nil, sent.found == nil)
		if found != nil {
			require.True(t, sent.found.SameCreation(found))
			require.Empty(t, sent.found.Key1)
		}
	}
	_, err = Commands()[kindFree]([]byte("No Account"))
	require.ErrorIs(t, err, record.ErrCommand)
	require.Error(t, sent.DecodeResult([]byte{0}))
}

// R19, invariant 4: a call that goes on with an operation ends where the account has moved to the other location meanwhile: what
// that one does after it would open the gates of a primary here. No range takes such a gate.
//
// Capability: Proofs: A witness in the simulator (R21).
func TestR19OperationOfTheOtherLocationIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Catalog, geo.Blob, geo.Queue, geo.Table)
	d := NewDirectory(s, "south")
	a := catalog.Account{
		Name: "acct", Primary: "south", Secondary: "north", Redundancy: catalog.RAGRS, Active: true, Epoch: 4, Created: 1,
		Operation: &catalog.Operation{Kind: catalog.OperationTaken},
	}
	stamptest.Submit(t, s, geo.FirstRange(geo.Catalog), recordtest.Does(func(tx *ranges.Tx) error { return record.StageLocal(tx, tx.Timestamp(0), &a) }))
	of := a
	require.NoError(t, d.resumeNow(t.Context(), &of))
	require.Equal(t, geo.Location("south"), of.Primary)
	gate := record.SetGate{Account: "acct", Gate: record.PrimaryGate(&a)}
	require.ErrorIs(t, s.Submit(t.Context(), geo.FirstRange(geo.Table), &gate), record.ErrCommand)
	for _, r := range s.Route().Data("acct") {
		require.Zero(t, s.Leader(r.ID).Machine.Gate("acct"))
	}
}

// R21: the gate of a primary goes from one that needs the word about an agreed epoch to one that needs none, and never back: a
// command that is late would have a location wait for the word about an epoch that no copy has any more.
func TestR21GateIsAgreedOnce(t *testing.T) {
	t.Parallel()
	s := stamptest.New(t, "north", geo.Table)
	id := geo.FirstRange(geo.Table)
	begun := change.Gate{Epoch: geo.Epoch{Number: 4, Location: "north"}, Role: change.RolePrimary, Open: true, Agreed: 1}
	known := begun
	known.Agreed = 0
	for _, c := range []struct{ set, want change.Gate }{{begun, begun}, {known, known}, {begun, known}} {
		stamptest.Submit(t, s, id, &record.SetGate{Account: "acct", Gate: c.set})
		require.Equal(t, c.want, s.Leader(id).Machine.Gate("acct"))
	}
}
