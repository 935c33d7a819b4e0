package primary

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

var repairEpoch = geo.Epoch{Number: 3, Location: "north"}

// repairs is the stamp north with an open and numbered account.
type repairs struct {
	*stamp.Stamp
	primary *Primary
	t       *testing.T
}

func newRepairs(t *testing.T) *repairs {
	s := stamptest.New(t, "north", geo.Table, geo.Blob)
	r := &repairs{s, New(s), t}
	r.gate(change.Gate{Epoch: repairEpoch, Role: change.RolePrimary, Open: true, Numbered: true})
	return r
}

func (r *repairs) gate(g change.Gate) {
	r.t.Helper()
	for _, s := range []geo.Service{geo.Table, geo.Blob} {
		stamptest.Submit(r.t, r.Stamp, geo.FirstRange(s), stamptest.Gate{Account: "acct", Gate: g})
	}
}

func tablePartition(object string) keys.Partition {
	return keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Generation: keys.Generation{Epoch: 1, Created: 7}, Object: object}
}

// set commits rows of a partition, without a check of payload.
func (r *repairs) set(p keys.Partition, ops ...change.Op) {
	r.t.Helper()
	stamptest.Submit(r.t, r.Stamp, geo.FirstRange(p.Service), stamptest.Change{Partition: p, Record: change.Record{Ops: ops}})
}

func (r *repairs) repair(service geo.Service, rows ...[]byte) ([]RepairOutcome, uint64) {
	r.t.Helper()
	out, n, err := r.primary.Repair(r.t.Context(), geo.FirstRange(service), &Repair{Account: "acct", Service: service, Epoch: repairEpoch, Keys: rows})
	require.NoError(r.t, err)
	return out, n
}

func (r *repairs) stream(p keys.Partition) geo.Stream {
	return geo.Stream{Account: "acct", Epoch: repairEpoch, Range: geo.FirstRange(p.Service), Lane: p.Lane()}
}

// sent returns the records of a partition's stream after the first n.
func (r *repairs) sent(p keys.Partition, n geo.Seq) (out []change.Record) {
	r.t.Helper()
	s := r.stream(p)
	encoded, err := r.Leader(s.Range).Machine.Outbox(s, n+1, 64<<20)
	require.NoError(r.t, err)
	for _, b := range encoded {
		rec, err := change.ParseRecord(b)
		require.NoError(r.t, err)
		out = append(out, rec)
	}
	return out
}

func key(p keys.Partition, row string) []byte { return append(p.Append(nil), row...) }

// R11: a repair is an ordinary change, numbered in the stream of its partition after all that came before:
// it sets what the primary holds when it is evaluated, and deletes what the primary does not hold. It
// changes nothing at the primary, and repeated it is one more record.
//
// Capability: Two locations: What differs is repaired from the primary while clients write.
func TestR11RepairIsAnOrdinaryChange(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	p, other := tablePartition("p"), tablePartition("other")
	r.set(p, change.Op{Row: []byte("a"), Value: []byte("old")}, change.Op{Row: []byte("b"), Value: []byte("1")})
	r.set(p, change.Op{Row: []byte("a"), Value: []byte("new")}, change.Op{Row: []byte("dead"), Value: []byte("1")})
	r.set(p, change.Op{Row: []byte("dead"), Delete: true})
	r.set(other, change.Op{Row: []byte("c"), Value: []byte("2")})
	for n := range geo.Seq(2) {
		out, size := r.repair(geo.Table, key(p, "a"), key(p, "b"), key(p, "dead"), key(other, "c"))
		require.Equal(t, []RepairOutcome{RepairSet, RepairSet, RepairDeleted, RepairSet}, out)
		require.EqualValues(t, len(key(p, "a"))+len(key(p, "b"))+len(key(p, "dead"))+len(key(other, "c"))+len("new12"), size)
		got := r.sent(p, 3+n)
		require.Len(t, got, 1)
		require.Equal(t, []change.Op{
			{Row: []byte("a"), Value: []byte("new")}, {Row: []byte("b"), Value: []byte("1")}, {Row: []byte("dead"), Delete: true},
		}, got[0].Ops)
		require.Equal(t, 4+n, got[0].Seq)
		require.Greater(t, got[0].CommitTime, r.sent(p, 2+n)[0].CommitTime)
		require.Equal(t, []change.Op{{Row: []byte("c"), Value: []byte("2")}}, r.sent(other, 1+n)[0].Ops)
		require.Empty(t, got[0].Chunks)
	}
	v, ok, err := r.Leader(geo.FirstRange(geo.Table)).State().Get(key(p, "a"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "new", string(v))
}

// R7: nothing is repaired but under the gate of the epoch in which the rows were compared, by the primary,
// and while changes are shipped. Nor are rows that the other location should not have named.
//
// Capability: Two locations: What differs is repaired from the primary while clients write.
func TestR7RepairUnderItsGateAlone(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	p := tablePartition("p")
	r.set(p, change.Op{Row: []byte("a"), Value: []byte("1")})
	for _, g := range []change.Gate{
		{Epoch: repairEpoch, Role: change.RolePrimary, Numbered: true},
		{Epoch: repairEpoch, Role: change.RolePrimary, Open: true},
		{Epoch: geo.Epoch{Number: 4, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true},
		{Epoch: repairEpoch, Role: change.RoleSecondary, Open: true, Numbered: true},
	} {
		r.gate(g)
		out, _ := r.repair(geo.Table, key(p, "a"), key(p, "b"))
		require.Equal(t, []RepairOutcome{RepairRefused, RepairRefused}, out, "%+v", g)
	}
	r.gate(change.Gate{Epoch: repairEpoch, Role: change.RolePrimary, Open: true, Numbered: true})
	stranger, blob := p, p
	stranger.Account, blob.Service = "acct2", geo.Blob
	out, _ := r.repair(geo.Table, key(stranger, "a"), key(blob, "a"), []byte("no key"), key(p, "a"))
	require.Equal(t, []RepairOutcome{RepairRefused, RepairRefused, RepairRefused, RepairSet}, out)
	require.Len(t, r.sent(p, 0), 2)
}

// R8: rows of a generation that was closed meanwhile are left alone.
//
// Capability: Two locations: What differs is repaired from the primary while clients write.
// Capability: Two locations: A name created at both locations is not burnt; its highest epoch outlives it (R8).
func TestR8RepairOfAClosedGeneration(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	p := tablePartition("p")
	r.set(p, change.Op{Row: []byte("a"), Value: []byte("1")})
	require.NoError(t, r.primary.CloseGeneration(t.Context(), geo.Table, "acct", "t", p.Generation))
	out, _ := r.repair(geo.Table, key(p, "a"), key(p, "b"))
	require.Equal(t, []RepairOutcome{RepairGone, RepairGone}, out)
	require.Len(t, r.sent(p, 0), 1)
}

// R3: the record of a repaired row names the payload of the row, so that it is sent, too. A row whose
// payload is not at the leader waits; one that cannot be read is left as the secondary has it.
func TestR3RepairNamesPayload(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	name := blobs.Name{Account: "acct", Container: "c", Generation: keys.Generation{Epoch: 1, Created: 7}, Blob: "b"}
	data := bytes.Repeat([]byte("x"), 40<<10)
	ref := extent.NewRef(extent.ChunkID{1}, data)
	put := &blobs.PutBlob{Command: blobs.Command{Name: name}, Blob: blobs.Blob{Length: 80 << 10, Chunks: []extent.Ref{ref, ref}}}
	effect, err := put.Evaluate(r.Leader(geo.FirstRange(geo.Blob)).State(), 9)
	require.NoError(t, err)
	bad := name
	bad.Blob = "bad"
	r.set(name.Partition(), effect.Ops...)
	r.set(bad.Partition(), change.Op{Row: effect.Ops[0].Row, Value: []byte("no row")})
	rows := [][]byte{key(bad.Partition(), string(effect.Ops[0].Row)), key(name.Partition(), string(effect.Ops[0].Row))}

	out, _ := r.repair(geo.Blob, rows...)
	require.Equal(t, []RepairOutcome{RepairUnreadable, RepairNoPayload}, out)
	require.Len(t, r.sent(name.Partition(), 0), 1)
	require.NoError(t, r.PutChunk(t.Context(), ref, data))
	out, size := r.repair(geo.Blob, rows...)
	require.Equal(t, []RepairOutcome{RepairUnreadable, RepairSet}, out)
	require.Greater(t, size, uint64(2*len(data)))
	sent := r.sent(name.Partition(), 1)
	require.Len(t, sent, 1)
	require.Equal(t, []extent.Ref{ref}, sent[0].Chunks, "once, though the row names it twice")
	require.Equal(t, effect.Ops, sent[0].Ops)
}

// R3: while the copy of an account is made again, a write names all payload of the rows that it sets, since the copy may
// lack what was written before (R17); afterwards, and in a container of the epoch, only what is new.
func TestR3WriteNamesPayloadThatACopyLacks(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	ref := extent.NewRef(extent.ChunkID{1}, bytes.Repeat([]byte("x"), 40<<10))
	require.NoError(t, r.PutChunk(t.Context(), ref, bytes.Repeat([]byte("x"), 40<<10)))
	write := func(name blobs.Name, w services.Write) change.Record {
		before := r.Leader(geo.FirstRange(geo.Blob)).Machine.Head(r.stream(name.Partition())).Seq
		require.NoError(t, r.primary.Write(t.Context(), w))
		sent := r.sent(name.Partition(), before)
		require.Len(t, sent, 1)
		return sent[0]
	}
	named := func(epoch geo.EpochNumber) []extent.Ref {
		t.Helper()
		name := blobs.Name{Account: "acct", Container: "c", Generation: keys.Generation{Epoch: epoch, Created: 7}, Blob: "b"}
		put := &blobs.PutBlob{Command: blobs.Command{Name: name}, Blob: blobs.Blob{Length: 80 << 10, Chunks: []extent.Ref{ref, ref}}}
		write(name, put)
		return write(name, &blobs.SetMetadata{Command: blobs.Command{Name: name}}).Chunks
	}
	old := repairEpoch.Number - 1
	require.Equal(t, []extent.Ref{ref}, named(old), "once, though the row names it twice")
	require.Empty(t, named(repairEpoch.Number), "what is in the container was sent in the epoch")

	blobRange := route.First().Service(geo.Blob)[0]
	require.NoError(t, r.primary.BeginImage(t.Context(), blobRange, "acct", repairEpoch, change.ImageSize{}))
	require.Equal(t, []extent.Ref{ref}, named(old))
	step, err := r.primary.StepImage(t.Context(), blobRange, "acct", repairEpoch, 0)
	require.NoError(t, err)
	require.NotNil(t, step.Image.Done)
	require.Empty(t, named(old), "the image has come to its end")
}

// R3: what clients wrote in the epoch of a copy before changes had numbers is not in the copy either, until the image has
// come to it. So it is with what they wrote while the stream of a blob was forked, until that is settled (R16).
func TestR3WriteNamesPayloadWithoutNumbers(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	blobRange, epoch := route.First().Service(geo.Blob)[0], geo.Epoch{Number: repairEpoch.Number + 1, Location: "north"}
	gate := change.Gate{Epoch: epoch, Role: change.RolePrimary, Open: true}
	r.gate(gate)
	data := bytes.Repeat([]byte("x"), 40<<10)
	ref := extent.NewRef(extent.ChunkID{1}, data)
	require.NoError(t, r.PutChunk(t.Context(), ref, data))
	name := func(blob string) blobs.Name {
		return blobs.Name{Account: "acct", Container: "c", Generation: keys.Generation{Epoch: epoch.Number, Created: 7}, Blob: blob}
	}
	put := func(blob string) {
		w := &blobs.PutBlob{Command: blobs.Command{Name: name(blob)}, Blob: blobs.Blob{Length: 40 << 10, Chunks: []extent.Ref{ref}}}
		require.NoError(t, r.primary.Write(t.Context(), w))
	}
	stream := func(blob string) geo.Stream {
		return geo.Stream{Account: "acct", Epoch: epoch, Range: blobRange.ID, Lane: name(blob).Partition().Lane()}
	}
	named := func(blob string) []extent.Ref {
		t.Helper()
		st := stream(blob)
		m := r.Leader(st.Range).Machine
		before := m.Head(st).Seq
		require.NoError(t, r.primary.Write(t.Context(), &blobs.SetMetadata{Command: blobs.Command{Name: name(blob)}}))
		sent, err := m.Outbox(st, before+1, 1<<20)
		require.NoError(t, err)
		require.Len(t, sent, 1)
		rec, err := change.ParseRecord(sent[0])
		require.NoError(t, err)
		return rec.Chunks
	}
	put("a")
	put("b")
	stamptest.Submit(t, r.Stamp, blobRange.ID, numbers{gate})
	require.Equal(t, []extent.Ref{ref}, named("a"), "before the image begins")
	require.NoError(t, r.primary.BeginImage(t.Context(), blobRange, "acct", epoch, change.ImageSize{}))
	require.Equal(t, []extent.Ref{ref}, named("a"), "before it has come to the row")
	step, err := r.primary.StepImage(t.Context(), blobRange, "acct", epoch, 1)
	require.NoError(t, err)
	require.Nil(t, step.Image.Done)
	require.Empty(t, named("a"), "the image has sent it")
	require.Equal(t, []extent.Ref{ref}, named("b"))
	for step.Image.Done == nil {
		step, err = r.primary.StepImage(t.Context(), blobRange, "acct", epoch, 0)
		require.NoError(t, err)
	}
	require.Empty(t, named("b"))

	st := stream("a")
	stamptest.Submit(t, r.Stamp, st.Range, forks{st})
	require.Empty(t, named("a"), "nothing of it is applied there")
	stamptest.Submit(t, r.Stamp, st.Range, &ranges.Settle{Stream: st, From: geo.Head{Seq: 90, Hash: 9}})
	require.Equal(t, []extent.Ref{ref}, named("a"), "the copy was not compared since the fork")
	why, _ := r.Leader(st.Range).Machine.Stopped(st)
	stamptest.Submit(t, r.Stamp, st.Range, &ranges.EndSettle{Stream: st, Base: why.Here})
	require.Empty(t, named("a"))
}

// numbers has the changes of an account get numbers, as the directory does.
type numbers struct{ gate change.Gate }

func (n numbers) Evaluate(tx *ranges.Tx) error {
	tx.AwaitImage("acct", n.gate.Epoch)
	n.gate.Numbered = true
	tx.SetGate("acct", n.gate)
	return nil
}

// A repair that is larger than its bound does the first rows, and leaves the others for later; a record
// holds a part of a large partition, and each row as it is.
func TestRepairIsBounded(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	p := tablePartition("p")
	var rows [][]byte
	for i := range 30 {
		op := change.Op{Row: fmt.Appendf(nil, "%02d", i), Value: bytes.Repeat([]byte("v"), 60<<10)}
		r.set(p, op)
		rows = append(rows, key(p, string(op.Row)))
	}
	r.set(p, change.Op{Row: []byte("31"), Value: bytes.Repeat([]byte("v"), 1<<20)})
	rows = append(rows, key(p, "31"))
	head, set := geo.Seq(31), 0
	for try := 0; len(rows) > 0; try++ {
		require.Less(t, try, 5)
		out, _ := r.repair(geo.Table, rows...)
		n := 0
		for n < len(out) && out[n] == RepairSet {
			n++
		}
		require.Positive(t, n)
		for _, later := range out[n:] {
			require.Equal(t, RepairLater, later)
		}
		rows = rows[n:]
		for _, rec := range r.sent(p, head) {
			size := 0
			for _, op := range rec.Ops {
				size += len(op.Value)
			}
			require.True(t, size <= rowsRecordBytes || len(rec.Ops) == 1)
			set += len(rec.Ops)
			head = rec.Seq
		}
	}
	require.Equal(t, 31, set)
}

// R22: a rewind ends after the command that reaches its bytes, and says how many rows it has numbered; without a bound it
// numbers all.
func TestR22RewindIsBounded(t *testing.T) {
	t.Parallel()
	r := newRepairs(t)
	p := tablePartition("p")
	var rows [][]byte
	for i := range 8 {
		op := change.Op{Row: fmt.Appendf(nil, "%02d", i), Value: bytes.Repeat([]byte("v"), 700<<10)}
		r.set(p, op)
		rows = append(rows, key(p, string(op.Row)))
	}
	at, _ := route.First().Range(geo.FirstRange(geo.Table))
	done, size, err := r.primary.Rewind(t.Context(), at, "acct", repairEpoch, rows, 2<<20)
	require.NoError(t, err)
	require.Greater(t, done, 1)
	require.Less(t, done, len(rows))
	require.GreaterOrEqual(t, size, uint64(2<<20))
	require.Less(t, size, uint64(4<<20))
	done, _, err = r.primary.Rewind(t.Context(), at, "acct", repairEpoch, rows, 0)
	require.NoError(t, err)
	require.Equal(t, len(rows), done)
}

// The command and its result are the same at the node that leads; bytes that are none are refused.
func TestRepairTravels(t *testing.T) {
	t.Parallel()
	p := tablePartition("p\x00\xff")
	sent := &Repair{Account: "acct", Service: geo.Table, Epoch: repairEpoch, Keys: [][]byte{key(p, "\xff\x00"), key(p, "")}}
	got, err := Commands()[sent.Kind()](sent.Encode())
	require.NoError(t, err)
	require.Equal(t, sent, got)
	there := got.(*Repair)
	there.outcomes, there.bytes = []RepairOutcome{RepairSet, RepairRefused}, 77
	require.NoError(t, sent.DecodeResult(there.EncodeResult()))
	require.Equal(t, there, sent)

	for _, bad := range []string{"", "{}", `{"Account":"a","Keys":1}`} {
		_, err := Commands()[sent.Kind()]([]byte(bad))
		require.ErrorIs(t, err, errRepair)
	}
	many := &Repair{Account: "acct", Keys: make([][]byte, RepairRowsMax+1)}
	_, err = Commands()[sent.Kind()](many.Encode())
	require.ErrorIs(t, err, errRepair)
	for _, bad := range []string{"", "{}", `{"Outcomes":"AQ=="}`, `{"Outcomes":"AQg="}`} {
		require.ErrorIs(t, sent.DecodeResult([]byte(bad)), errRepair, bad)
	}
}

// Submit's error is the repair's.
func TestRepairFails(t *testing.T) {
	t.Parallel()
	_, _, err := New(failing{}).Repair(t.Context(), 1, &Repair{})
	require.ErrorIs(t, err, errFailed)
}

type failing struct{ ranges.Routed }

func (failing) Submit(context.Context, geo.RangeID, ranges.Command) error { return errFailed }

func (failing) SubmitAll(context.Context, geo.RangeID, []ranges.Command) []error { return nil }
