package primary

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// forks stops a stream as forked.
type forks struct{ st geo.Stream }

func (f forks) Evaluate(tx *ranges.Tx) error {
	tx.Stop(f.st, change.Stop{Reason: change.StopForked, There: geo.Head{Seq: 90, Hash: 9}})
	return nil
}

// taking settles the stream of a partition for the secondary's side.
func (r *repairs) taking(p keys.Partition) (geo.Stream, geo.Head) {
	r.t.Helper()
	st := geo.Stream{Account: "acct", Epoch: repairEpoch, Range: geo.FirstRange(p.Service), Lane: p.Lane()}
	stamptest.Submit(r.t, r.Stamp, st.Range, forks{st})
	cmd := &ranges.Settle{Stream: st, From: geo.Head{Seq: 90, Hash: 9}, Take: true}
	stamptest.Submit(r.t, r.Stamp, st.Range, cmd)
	require.Equal(r.t, ranges.SettleBegun, cmd.Outcome)
	why, _ := r.Leader(st.Range).Machine.Stopped(st)
	return st, why.Here
}

// take takes units at a leader in another process.
func (r *repairs) take(st geo.Stream, base geo.Head, units ...TakeUnit) []TakeOutcome {
	r.t.Helper()
	sent := &Take{Stream: st, Base: base, Units: units}
	arrived, err := Commands()[sent.Kind()](sent.Encode())
	require.NoError(r.t, err)
	_, err = r.primary.Take(r.t.Context(), arrived.(*Take))
	require.NoError(r.t, err)
	require.NoError(r.t, sent.DecodeResult(arrived.EncodeResult()))
	return sent.outcomes
}

// scan are the rows with a prefix, by what follows it.
func (r *repairs) scan(id geo.RangeID, prefix []byte) map[string]string {
	r.t.Helper()
	snap, err := ranges.Snapshot(r.t.Context(), r.Stamp, id)
	require.NoError(r.t, err)
	out := map[string]string{}
	require.NoError(r.t, keys.Each(snap, prefix, func(key, value []byte) error {
		out[string(key[len(prefix):])] = string(value)
		return nil
	}))
	require.NoError(r.t, snap.Close())
	return out
}

// found are the values in the lost-and-found of a settlement, by the keys of their rows.
func (r *repairs) found(st geo.Stream, base geo.Head) map[string]string {
	r.t.Helper()
	out := r.scan(st.Range, keys.Found(geo.Service(st.Range), st, base.Seq).Append(nil))
	for key, value := range out {
		f, err := change.ParseFound([]byte(value))
		require.NoError(r.t, err)
		out[key] = string(f.Value)
	}
	return out
}

// held are the rows of a partition.
func (r *repairs) held(p keys.Partition) map[string]string {
	r.t.Helper()
	return r.scan(geo.FirstRange(p.Service), p.Append(nil))
}

func unitOf(p keys.Partition, row string, rows ...TakeRow) TakeUnit {
	return TakeUnit{Key: p.Unit([]byte(row)), Rows: rows}
}

// R16: a take makes entities what they are at the secondary, by numbered changes, and keeps what they were in the same
// group. One that a client has written since the base stays, whatever it was before; what is the same needs nothing; a
// repetition changes nothing.
//
// Capability: Two locations: A fork is settled for the secondary's side too (R16).
func TestR16TakeOfEntities(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	p := tablePartition("p")
	op := func(row, value string) change.Op { return change.Op{Row: []byte(row), Value: []byte(value)} }
	r.set(p, op("changed", "old"), op("extra", "1"), op("same", "s"), op("written", "old"))
	st, base := r.taking(p)
	r.set(p, op("written", "new"), op("back", "x"))
	r.set(p, change.Op{Delete: true, Row: []byte("back")})
	row := func(row, value string) TakeUnit {
		return unitOf(p, row, TakeRow{key(p, row), []byte(value)})
	}
	units := []TakeUnit{row("back", "lost"), row("changed", "lost"), unitOf(p, "extra"), row("missing", "lost"), row("same", "s"), row("written", "lost")}
	head := r.Leader(st.Range).Machine.Head(st).Seq
	require.Equal(t, []TakeOutcome{TakeWritten, TakeTaken, TakeTaken, TakeTaken, TakeSame, TakeWritten}, r.take(st, base, units...))
	held := map[string]string{"changed": "lost", "missing": "lost", "same": "s", "written": "new"}
	require.Equal(t, held, r.held(p))
	kept := map[string]string{string(key(p, "changed")): "old", string(key(p, "extra")): "1"}
	require.Equal(t, kept, r.found(st, base))
	var ops []change.Op
	for _, rec := range r.sent(p, head) {
		ops = append(ops, rec.Ops...)
	}
	require.Equal(t, []change.Op{op("changed", "lost"), {Delete: true, Row: []byte("extra")}, op("missing", "lost")}, ops)
	head = r.Leader(st.Range).Machine.Head(st).Seq
	require.Equal(t, []TakeOutcome{TakeSame, TakeSame}, r.take(st, base, units[1:3]...))
	require.Equal(t, head, r.Leader(st.Range).Machine.Head(st).Seq)

	r.set(p, op("changed", "newest"))
	require.Equal(t, []TakeOutcome{TakeWritten}, r.take(st, base, units[1]), "written after it was taken")
	require.NoError(t, r.primary.CloseGeneration(t.Context(), geo.Table, "acct", "t", p.Generation))
	require.Equal(t, []TakeOutcome{TakeGone}, r.take(st, base, row("missing", "later")))
}

// R16: nothing is taken but for the settlement that the units were read for, and no row but of its stream.
//
// Capability: Two locations: A fork is settled for the secondary's side too (R16).
func TestR16TakeIsRefused(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	p := tablePartition("p")
	r.set(p, change.Op{Row: []byte("a"), Value: []byte("1")})
	st, base := r.taking(p)
	other := p
	for other.Lane() == p.Lane() {
		other.Object += "x"
	}
	stranger, blob := p, p
	stranger.Account, blob.Service = "acct2", geo.Blob
	unit := unitOf(p, "a", TakeRow{key(p, "a"), []byte("2")})
	units := []TakeUnit{
		unitOf(other, "a"), unitOf(stranger, "a"), unitOf(blob, "a"),
		{Key: []byte("no key")},
		unitOf(p, "a", TakeRow{key(p, "b"), nil}), unitOf(p, "a", unit.Rows[0], unit.Rows[0]),
	}
	for _, o := range r.take(st, base, units...) {
		require.Equal(t, TakeRefused, o)
	}
	next := base
	next.Hash++
	require.Equal(t, []TakeOutcome{TakeRefused}, r.take(st, next, unit), "of another base")
	closed := change.Gate{Epoch: repairEpoch, Role: change.RolePrimary, Numbered: true}
	r.gate(closed)
	require.Equal(t, []TakeOutcome{TakeRefused}, r.take(st, base, unit))
	closed.Open = true
	r.gate(closed)
	stamptest.Submit(t, r.Stamp, st.Range, &ranges.Settle{Stream: st, From: geo.Head{Seq: 90, Hash: 9}})
	require.Equal(t, []TakeOutcome{TakeRefused}, r.take(st, base, unit), "for the other side now")
	stamptest.Submit(t, r.Stamp, st.Range, &ranges.EndSettle{Stream: st, Base: base})
	require.Equal(t, []TakeOutcome{TakeRefused}, r.take(st, base, unit), "it has ended")
	require.Equal(t, map[string]string{"a": "1"}, r.held(p))
	require.Empty(t, r.found(st, base))
	_, err := Commands()[kindTake]([]byte(`{"Stream":{"Account":"acct","Lane":99}}`))
	require.ErrorIs(t, err, errTake)
	require.ErrorIs(t, (&Take{}).DecodeResult([]byte{1}), errTake)
	require.ErrorIs(t, (&Take{Units: units[:1]}).DecodeResult([]byte{200}), errTake)
}

// R16: what the secondary has at a record that is none of the stream here is not taken: it may be of a client's write that
// a recovery with loss has taken back here, with the knowledge of what it wrote. Nor is what it had at a record that is
// deleted here since.
func TestR16TakeIsOfARecordOfTheStream(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	p := tablePartition("p")
	st, base := r.taking(p)
	r.set(p, change.Op{Row: []byte("other"), Value: []byte("1")})
	unit := unitOf(p, "a", TakeRow{key(p, "a"), []byte("2")})
	take := func(at geo.Head) []TakeOutcome {
		sent := &Take{Stream: st, Base: base, At: at, Units: []TakeUnit{unit}}
		arrived, err := Commands()[sent.Kind()](sent.Encode())
		require.NoError(t, err)
		_, err = r.primary.Take(t.Context(), arrived.(*Take))
		require.NoError(t, err)
		require.NoError(t, sent.DecodeResult(arrived.EncodeResult()))
		return sent.outcomes
	}
	m := r.Leader(st.Range).Machine
	head := m.Head(st)
	for _, at := range []geo.Head{{Seq: base.Seq, Hash: base.Hash + 1}, {Seq: head.Seq, Hash: head.Hash + 1}, {Seq: head.Seq + 1, Hash: 1}} {
		require.Equal(t, []TakeOutcome{TakeAgain}, take(at))
	}
	stamptest.Submit(t, r.Stamp, st.Range, trims{st, base.Seq + 1})
	require.Equal(t, []TakeOutcome{TakeAgain}, take(base))
	require.Equal(t, head, m.Head(st))
	require.Equal(t, []TakeOutcome{TakeTaken}, take(head))
	require.Equal(t, map[string]string{"a": "2", "other": "1"}, r.held(p))
}

// trims deletes what the other location has acknowledged of a stream.
type trims struct {
	st geo.Stream
	n  geo.Seq
}

// Evaluate implements ranges.Command.
func (c trims) Evaluate(tx *ranges.Tx) error { return tx.Trim(c.st, c.n) }

// R3, R16: a blob is taken whole or not at all, once its payload is at the node that evaluates; what it was is kept
// with its payload. A blob of which a client has written any row since stays with all its rows.
func TestR16TakeOfBlobs(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	name := blobs.Name{Account: "acct", Container: "c", Generation: keys.Generation{Epoch: 1, Created: 7}, Blob: "b"}
	p := name.Partition()
	blobRow := func(data []byte, seed byte) (extent.Ref, change.Op) {
		ref := extent.NewRef(extent.ChunkID{seed}, data)
		put := &blobs.PutBlob{Command: blobs.Command{Name: name}, Blob: blobs.Blob{Length: uint64(len(data)), Chunks: []extent.Ref{ref}}}
		effect, err := put.Evaluate(r.Leader(geo.FirstRange(geo.Blob)).State(), 9)
		require.NoError(t, err)
		return ref, effect.Ops[0]
	}
	ours, theirs := bytes.Repeat([]byte("o"), 40<<10), bytes.Repeat([]byte("t"), 50<<10)
	ourRef, ourOp := blobRow(ours, 1)
	theirRef, theirOp := blobRow(theirs, 2)
	require.NoError(t, r.PutChunk(t.Context(), ourRef, ours))
	r.set(p, ourOp, change.Op{Row: []byte{9, 9}, Value: []byte("beside")})
	st, base := r.taking(p)
	unit := unitOf(p, "", TakeRow{key(p, string(theirOp.Row)), theirOp.Value})
	require.Equal(t, []extent.Ref{theirRef}, unit.TakeChunks())
	require.Equal(t, []TakeOutcome{TakeNoPayload}, r.take(st, base, unit))
	require.Len(t, r.held(p), 2)
	require.NoError(t, r.PutChunk(t.Context(), theirRef, theirs))
	bad := unitOf(p, "", TakeRow{key(p, string(theirOp.Row)), []byte("no row")})
	require.Equal(t, []TakeOutcome{TakeUnreadable, TakeTaken}, r.take(st, base, bad, unit))
	require.Equal(t, map[string]string{string(theirOp.Row): string(theirOp.Value)}, r.held(p), "and nothing else of what was here")
	require.Equal(t, map[string]string{
		string(key(p, string(ourOp.Row))): string(ourOp.Value), string(key(p, string([]byte{9, 9}))): "beside",
	}, r.found(st, base))
	sent := r.sent(p, base.Seq)
	require.Equal(t, []extent.Ref{theirRef}, sent[len(sent)-1].Chunks, "so that its payload is on every replica, and sent")
	var kept change.Found
	foundKey := append(keys.Found(geo.Blob, st, base.Seq).Append(nil), key(p, string(ourOp.Row))...)
	value, _, err := r.Leader(st.Range).State().Get(foundKey)
	require.NoError(t, err)
	kept, err = change.ParseFound(value)
	require.NoError(t, err)
	require.Equal(t, []extent.Ref{ourRef}, kept.Chunks)

	r.set(p, change.Op{Row: []byte{9, 8}, Value: []byte("by a client")})
	require.Equal(t, []TakeOutcome{TakeWritten}, r.take(st, base, unitOf(p, "")))
	require.Len(t, r.held(p), 2)
}

// R16: no two states of a blob are mixed. One that is too large to be taken is left to the primary for good, before its
// first row is sent: a part of its rows may then be at the secondary, which is neither what it had nor too large. For
// the same reason no repair sends rows of a blob that may still be taken, of `verify --repair` neither. What clients have written,
// and what is the same in both, may be sent.
func TestR16BlobsAreTakenWholeOrSent(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	blob := func(name string) keys.Partition {
		p := tablePartition(name)
		p.Service = geo.Blob
		for p.Lane() != (keys.Partition{Service: geo.Blob, Account: "acct", Container: "t", Object: "large"}).Lane() {
			p.Object += "x"
		}
		return p
	}
	row := func(n byte, value string) change.Op { return change.Op{Row: []byte{9, n}, Value: []byte(value)} }
	taken := func(p keys.Partition, ops ...change.Op) TakeUnit {
		u := unitOf(p, "")
		for _, op := range ops {
			u.Rows = append(u.Rows, TakeRow{key(p, string(op.Row)), op.Value})
		}
		return u
	}
	large, here, same, written, differs := blob("large"), blob("here"), blob("same"), blob("written"), blob("differs")
	for _, p := range []keys.Partition{large, same, written, differs} {
		r.set(p, row(1, "primary's"))
	}
	var ops []change.Op
	for n := range byte(takeHereMax>>20 + 1) {
		ops = append(ops, row(n, string(bytes.Repeat([]byte("h"), 1<<20))))
	}
	r.set(here, ops...)
	st, base := r.taking(large)
	r.set(written, row(2, "since"))
	all := [][]byte{key(large, "\x09\x01"), key(here, "\x09\x01"), key(same, "\x09\x01"), key(written, "\x09\x01"), key(differs, "\x09\x01")}
	head := r.Leader(st.Range).Machine.Head(st)
	out, _ := r.repair(geo.Blob, all[0], all[1], all[2], all[4])
	require.Equal(t, []RepairOutcome{RepairSettling, RepairSettling, RepairSettling, RepairSettling}, out)
	require.Equal(t, head, r.Leader(st.Range).Machine.Head(st), "nothing is sent")
	out, _ = r.repair(geo.Blob, all[3])
	require.Equal(t, []RepairOutcome{RepairSet}, out)

	tooLarge := unitOf(large, "")
	tooLarge.Large = true
	theirs := row(1, "secondary's")
	units := []TakeUnit{tooLarge, taken(here, theirs), taken(same, row(1, "primary's"))}
	require.Equal(t, []TakeOutcome{TakeLarge, TakeLarge, TakeSame}, r.take(st, base, units...))
	require.Len(t, r.held(here), len(ops))
	out, _ = r.repair(geo.Blob, all[0], all[2])
	require.Equal(t, []RepairOutcome{RepairSet, RepairSet}, out)
	half := taken(large, row(1, "primary's"), row(2, "secondary's"))
	require.Equal(t, []TakeOutcome{TakeWritten, TakeWritten, TakeWritten}, r.take(st, base, half, taken(here, theirs), taken(same, theirs)))
	require.Equal(t, map[string]string{"\x09\x01": "primary's"}, r.held(large))
	require.Empty(t, r.found(st, base))

	out, _ = r.repair(geo.Blob, all[4])
	require.Equal(t, []RepairOutcome{RepairSettling}, out)
	require.Equal(t, []TakeOutcome{TakeTaken}, r.take(st, base, taken(differs, theirs)))
	require.Equal(t, map[string]string{"\x09\x01": "secondary's"}, r.held(differs))
}
