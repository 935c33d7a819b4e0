package primary

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

var tableRange = route.First().Service(geo.Table)[0]

// imaged is a stamp with an account that was not shipped until now.
type imaged struct {
	t       *testing.T
	stamp   *stamp.Stamp
	primary *Primary
	epoch   geo.Epoch
	rand    *rand.Rand
}

func newImaged(t *testing.T) *imaged {
	w := &imaged{t: t, stamp: stamptest.New(t, "north", geo.Table), rand: rand.New(rand.NewPCG(17, 17))}
	w.primary = New(w.stamp)
	w.gate(1, false)
	return w
}

func (w *imaged) gate(epoch geo.EpochNumber, numbered bool) {
	w.epoch = geo.Epoch{Number: epoch, Location: "north"}
	stamptest.Submit(w.t, w.stamp, geo.FirstRange(geo.Table), stamptest.Gate{Account: "acct", Gate: change.Gate{
		Epoch: w.epoch, Role: change.RolePrimary, Open: true, Numbered: numbered,
	}})
}

func (w *imaged) partition(container string, n int) keys.Partition {
	return keys.Partition{
		Service: geo.Table, Account: "acct", Container: container, Object: fmt.Sprintf("p%02d", n), Generation: keys.Generation{Epoch: 1, Created: 5},
	}
}

// set commits a change of some rows of a partition; an empty value deletes.
func (w *imaged) set(p keys.Partition, value string, rows ...int) {
	rec := change.Record{Partition: p.Append(nil)}
	for _, r := range rows {
		rec.Ops = append(rec.Ops, change.Op{Row: []byte(fmt.Sprintf("r%03d", r)), Value: []byte(value), Delete: value == ""})
	}
	stamptest.Submit(w.t, w.stamp, geo.FirstRange(geo.Table), stamptest.Change{Partition: p, Record: rec})
}

// step makes a step of an image that was begun.
func (w *imaged) step() ranges.ImageStep {
	require.NoError(w.t, w.primary.BeginImage(w.t.Context(), tableRange, "acct", w.epoch, change.ImageSize{Rows: 5000}))
	out, err := w.primary.StepImage(w.t.Context(), tableRange, "acct", w.epoch, 0)
	require.NoError(w.t, err)
	return out
}

func (w *imaged) restart() {
	for _, n := range w.stamp.Nodes() {
		require.NoError(w.t, w.stamp.Stop(n, true))
		require.NoError(w.t, w.stamp.Start(n))
	}
}

func (w *imaged) leader() *ranges.Range {
	w.t.Helper()
	stamptest.Submit(w.t, w.stamp, geo.FirstRange(geo.Table), does(func(*ranges.Tx) {})) // Waits for a leader.
	r := w.stamp.Leader(geo.FirstRange(geo.Table))
	require.NotNil(w.t, r)
	return r
}

// does is a command made of one function.
type does func(tx *ranges.Tx)

func (c does) Evaluate(tx *ranges.Tx) error { c(tx); return nil }

// replay applies everything that the outbox has of the epoch, stream after stream, to an empty copy.
func (w *imaged) replay() map[string]string {
	r, copied := w.leader(), map[string]string{}
	for lane := range geo.Lane(geo.LaneCount) {
		s := geo.Stream{Account: "acct", Epoch: w.epoch, Range: geo.FirstRange(geo.Table), Lane: lane}
		for n := geo.Seq(1); n <= r.Machine.Head(s).Seq; {
			records, err := r.Machine.Outbox(s, n, 1<<20)
			require.NoError(w.t, err)
			require.NotEmpty(w.t, records)
			for _, b := range records {
				rec, err := change.ParseRecord(b)
				require.NoError(w.t, err)
				require.Equal(w.t, n, rec.Seq)
				n++
				for _, op := range rec.Ops {
					key := string(rec.Partition) + string(op.Row)
					if copied[key] = string(op.Value); op.Delete {
						delete(copied, key)
					}
				}
			}
		}
	}
	return copied
}

// rows returns the rows of the account at the leader, those of table gone left out.
func (w *imaged) rows() map[string]string {
	out, skip := map[string]string{}, keys.AppendContainer(nil, geo.Table, "acct", "gone", keys.Generation{Epoch: 1, Created: 5})
	lower := keys.AppendAccount(nil, geo.Table, "acct")
	snap := w.leader().State().Snapshot()
	require.NoError(w.t, keys.Each(snap, lower, func(k, v []byte) error {
		if !bytes.HasPrefix(k, skip) {
			out[string(k)] = string(v)
		}
		return nil
	}))
	require.NoError(w.t, snap.Close())
	return out
}

// R17: whatever is written, deleted and restarted while the image of an account's rows is made, a copy that began
// empty and applies the streams of the epoch is equal to the rows in the end. Rows of a generation that is closed
// are left out. A restart does not begin the image again.
//
// Capability: Two locations: The copy of an account is made while clients write, from LRS, and again (R17).
func TestR17ImageWhileClientsWrite(t *testing.T) {
	t.Parallel()
	w := newImaged(t)
	others := keys.Partition{Service: geo.Table, Account: "acctt", Container: "t", Object: "p"} // Behind acct in the order of keys.
	for n := range 12 {
		for at := 0; at < 150; at += 50 {
			rows := make([]int, 50)
			for i := range rows {
				rows[i] = at + i
			}
			w.set(w.partition("t", n), fmt.Sprint("old ", n), rows...)
		}
	}
	w.set(w.partition("gone", 1), "x", 1, 2, 3)
	require.NoError(t, w.primary.CloseGeneration(t.Context(), geo.Table, "acct", "gone", keys.Generation{Epoch: 1, Created: 5}))
	stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), stamptest.Gate{Account: "acctt", Gate: change.Gate{
		Epoch: w.epoch, Role: change.RolePrimary, Open: true,
	}})
	stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), stamptest.Change{Partition: others, Record: change.Record{
		Partition: others.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}},
	}})

	w.gate(2, true)
	var last ranges.ImageStep
	steps := 0
	for ; last.Image.Done == nil; steps++ {
		before := last.Image.Copied.Rows
		last = w.step()
		require.Greater(t, last.Image.Copied.Rows, before)
		for range 8 {
			value := fmt.Sprint("new ", w.rand.IntN(1000))
			if w.rand.IntN(3) == 0 {
				value = ""
			}
			w.set(w.partition("t", w.rand.IntN(14)), value, w.rand.IntN(160))
		}
		if steps == 2 {
			w.restart()
		}
	}
	require.Greater(t, steps, 5)
	require.Less(t, steps, 12, "a step takes %d rows", imageRowsMax)
	want := w.rows()
	require.Greater(t, len(want), 1500)
	require.Equal(t, want, w.replay())
}

// R17: an image is applied once the other location has acknowledged all that was numbered when it came to the end.
// What is numbered later is none of it. A stream that is stopped is not applied.
func TestR17ImageIsApplied(t *testing.T) {
	t.Parallel()
	w := newImaged(t)
	for n := range 4 {
		w.set(w.partition("t", n), "v", 1)
	}
	w.gate(2, true)
	done := w.step()
	require.NotNil(t, done.Image.Done)
	require.EqualValues(t, 4, done.Image.Copied.Rows)
	w.set(w.partition("t", 1), "later", 1)
	require.False(t, w.step().Applied)
	id := geo.FirstRange(geo.Table)
	stream := func(n int) geo.Stream {
		return geo.Stream{Account: "acct", Epoch: w.epoch, Range: id, Lane: w.partition("t", n).Lane()}
	}
	trim := func(s geo.Stream, to geo.Seq) {
		stamptest.Submit(t, w.stamp, id, does(func(tx *ranges.Tx) { require.NoError(t, tx.Trim(s, to)) }))
	}
	for n := range 4 {
		require.False(t, w.step().Applied)
		trim(stream(n), done.Image.Done[stream(n).Lane])
	}
	require.True(t, w.step().Applied)
	require.Equal(t, done.Image, w.step().Image)
	stamptest.Submit(t, w.stamp, id, does(func(tx *ranges.Tx) { tx.Stop(stream(2), change.Stop{Reason: change.StopForked}) }))
	require.False(t, w.step().Applied)
}

// R17, R18: an image waits while the outbox holds more of the account than it may, and goes on when that is
// acknowledged. In another epoch it begins again, and only where the range numbers the account's changes.
func TestR17ImageIsHeld(t *testing.T) {
	t.Parallel()
	w := newImaged(t)
	for n := range 6 {
		w.set(w.partition("t", n), string(bytes.Repeat([]byte("x"), 1<<20)), 1)
	}
	_, err := w.primary.StepImage(t.Context(), tableRange, "acct", w.epoch, 0)
	require.ErrorIs(t, err, errImageEpoch, "not numbered")
	w.gate(2, true)
	steps := 0
	for !w.step().Held {
		steps++
	}
	require.Equal(t, 4, steps, "each row makes a step of 1 MiB")
	held := w.step()
	require.True(t, held.Held)
	require.EqualValues(t, 5000, held.Image.Total.Rows)
	require.EqualValues(t, 4, held.Image.Copied.Rows)
	for lane := range geo.Lane(geo.LaneCount) {
		s := geo.Stream{Account: "acct", Epoch: w.epoch, Range: geo.FirstRange(geo.Table), Lane: lane}
		stamptest.Submit(t, w.stamp, s.Range, does(func(tx *ranges.Tx) { require.NoError(t, tx.Trim(s, tx.Head(s).Seq)) }))
	}
	require.EqualValues(t, 5, w.step().Image.Copied.Rows)

	old := w.epoch
	w.gate(3, true)
	_, err = w.primary.StepImage(t.Context(), tableRange, "acct", old, 0)
	require.ErrorIs(t, err, errImageEpoch, "a former epoch")
	require.EqualValues(t, 1, w.step().Image.Copied.Rows)
}

// R17: clients that always keep more on its way than an image may do not stop it: a step follows whenever as much was
// acknowledged. While nothing is, it waits.
func TestR17ImageBesideBusyClients(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, slow under the race detector")
	}
	w := newImaged(t)
	const rows = 4
	for n := range rows {
		w.set(w.partition("t", n), string(bytes.Repeat([]byte("x"), 1<<20)), 1)
	}
	w.gate(2, true)
	busy := w.partition("busy", 0)
	ship := geo.Stream{Account: "acct", Epoch: w.epoch, Range: geo.FirstRange(geo.Table), Lane: busy.Lane()}
	value := string(bytes.Repeat([]byte("y"), 1<<20))
	write := func(mib int) {
		for range mib {
			w.set(busy, value, 1)
		}
	}
	acknowledge := func(records geo.Seq) {
		stamptest.Submit(t, w.stamp, ship.Range, does(func(tx *ranges.Tx) {
			require.NoError(t, tx.Trim(ship, tx.Acknowledged(ship)+records))
		}))
	}
	write(10)
	require.True(t, w.step().Held)
	steps := 0
	for round := 0; steps < rows; round++ {
		require.Less(t, round, 20)
		write(2)
		acknowledge(2)
		if !w.step().Held {
			steps++
			require.True(t, w.step().Held, "one step each time")
		}
	}
	write(10)
	for range 5 {
		require.True(t, w.step().Held)
	}
}

// R18: payload that waits counts too. It may be large where the records that name it are small.
//
// Capability: Two locations: An account may slow or refuse its writes while changes are late.
func TestR18ImageIsHeldByPayload(t *testing.T) {
	t.Parallel()
	var b ImageBounds
	require.False(t, b.isAhead(change.Volume{Bytes: imageAheadMax, Payload: imageAheadPayloadMax}))
	require.True(t, b.isAhead(change.Volume{Bytes: imageAheadMax + 1}))
	require.True(t, b.isAhead(change.Volume{Payload: imageAheadPayloadMax + 1}))
	b.Ahead = 10
	require.True(t, b.isAhead(change.Volume{Payload: 11}))
	w := newImaged(t)
	w.gate(2, true)
	chunk := extent.NewRef(extent.ChunkID{1}, []byte("payload"))
	require.NoError(t, w.stamp.PutChunk(t.Context(), chunk, []byte("payload")))
	p := w.partition("t", 1)
	for range 2 {
		stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), stamptest.Change{Partition: p, Record: change.Record{
			Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}, Chunks: []extent.Ref{chunk},
		}})
	}
	stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), does(func(tx *ranges.Tx) {
		v := tx.Waiting("acct")
		require.EqualValues(t, 2*len("payload"), v.Payload)
		require.Positive(t, v.Bytes)
	}))
}

// A step travels to the leader's node, and its outcome back. Bytes that are none are refused.
func TestImageTravels(t *testing.T) {
	t.Parallel()
	here := &image{service: geo.Blob, account: "acct", epoch: geo.Epoch{Number: 3, Location: "north"}}
	var there *image
	for _, counted := range []*change.ImageSize{{}, {Rows: 1, Bytes: 2, Payload: 3}, nil} {
		here.counted, here.bytesMax = counted, 7
		p, err := Commands()[here.Kind()](here.Encode())
		require.NoError(t, err)
		require.Equal(t, here, p)
		there = p.(*image)
	}
	for _, out := range []ranges.ImageStep{
		{Image: change.Image{Epoch: here.epoch, Next: []byte{1}}, Held: true},
		{Image: change.Image{Epoch: here.epoch, Done: make([]geo.Seq, geo.LaneCount)}, Applied: true},
		{Uncounted: true},
		{Took: change.ImageSize{Rows: 1, Bytes: 2, Payload: 3}},
		{},
	} {
		there.out = out
		require.NoError(t, here.DecodeResult(there.EncodeResult()))
		require.Equal(t, out, here.out)
	}
	require.ErrorIs(t, here.DecodeResult([]byte("1")), errImage)
	for _, bad := range []string{"", "1", `{"Account":"A"}`} {
		_, err := parseImage([]byte(bad))
		require.ErrorIs(t, err, errImage)
	}
}

// An image keeps what was counted when it began, until it has come to the end: then it has what it came to. One that
// has not begun makes no step, and one that has begun does not begin again.
func TestR17ImageIsCounted(t *testing.T) {
	t.Parallel()
	w := newImaged(t)
	for n := range 3 {
		w.set(w.partition("t", n), "value", 1, 2)
	}
	w.gate(2, true)
	counted := change.ImageSize{Rows: 4, Bytes: 400, Payload: 40}
	begin := func(c change.ImageSize) {
		require.NoError(t, w.primary.BeginImage(t.Context(), tableRange, "acct", w.epoch, c))
	}
	image := func() change.Image {
		m, err := ranges.ImageIn(w.leader().State(), geo.FirstRange(geo.Table), "acct")
		require.NoError(t, err)
		return m
	}
	none, err := w.primary.StepImage(t.Context(), tableRange, "acct", w.epoch, 0)
	require.NoError(t, err)
	require.Equal(t, ranges.ImageStep{Uncounted: true}, none)
	require.Zero(t, image())
	begin(counted)
	begin(change.ImageSize{Rows: 9})
	require.Equal(t, change.Image{Epoch: w.epoch, Total: counted}, image())
	want, next, err := w.primary.CountRows(t.Context(), tableRange, "acct", nil)
	require.NoError(t, err)
	require.Nil(t, next)
	done := w.step().Image
	require.NotNil(t, done.Done)
	require.EqualValues(t, 6, want.Rows)
	require.Equal(t, [2]change.ImageSize{want, want}, [2]change.ImageSize{done.Copied, done.Total})

	old := w.epoch
	w.gate(3, true)
	require.ErrorIs(t, w.primary.BeginImage(t.Context(), tableRange, "acct", old, counted), errImageEpoch)
	begin(counted)
	require.Equal(t, counted, image().Total, "another epoch")
}

// R17: a step keeps to the bytes that it is given, of rows and payload together, but takes a row at least. What it took
// is what the image gained.
func TestR17StepIsBounded(t *testing.T) {
	t.Parallel()
	w := newImaged(t)
	for n := range 5 {
		w.set(w.partition("t", n), string(bytes.Repeat([]byte("x"), 1000)), 1)
	}
	w.gate(2, true)
	require.NoError(t, w.primary.BeginImage(t.Context(), tableRange, "acct", w.epoch, change.ImageSize{}))
	step := func(bytesMax uint64) ranges.ImageStep {
		out, err := w.primary.StepImage(t.Context(), tableRange, "acct", w.epoch, bytesMax)
		require.NoError(t, err)
		return out
	}
	first := step(1)
	require.EqualValues(t, 1, first.Took.Rows)
	require.Greater(t, first.Took.Bytes, uint64(1000))
	second := step(1500)
	require.EqualValues(t, 2, second.Took.Rows)
	require.Equal(t, first.Took.Add(second.Took), second.Image.Copied)
	require.EqualValues(t, 2, step(0).Took.Rows)
	c := &image{bytesMax: 100}
	require.True(t, c.full(change.ImageSize{Rows: 1, Bytes: 10, Payload: 90}))
	require.False(t, c.full(change.ImageSize{Rows: 1, Bytes: 10, Payload: 89}))
}

// R16, R17: an image leaves out the lanes whose streams have forked, and those that are being settled: each is compared as a
// whole. Behind the base of a settlement a row of the image would undo what the secondary alone has.
//
// Capability: Two locations: A fork is settled for the secondary's side too (R16).
func TestR16ImageLeavesForkedLanes(t *testing.T) {
	t.Parallel()
	w := newImaged(t)
	for n := range 8 {
		w.set(w.partition("t", n), "v", 1)
	}
	id, lane := geo.FirstRange(geo.Table), w.partition("t", 3).Lane()
	for n, why := range []change.StopReason{change.StopForked, change.StopLost, change.StopSettling, change.StopTaking, change.StopPoison} {
		w.gate(geo.EpochNumber(2+n), true)
		st := geo.Stream{Account: "acct", Epoch: w.epoch, Range: id, Lane: lane}
		stamptest.Submit(t, w.stamp, id, does(func(tx *ranges.Tx) { tx.Stop(st, change.Stop{Reason: why}) }))
		require.NotNil(t, w.step().Image.Done)
		copied := w.replay()
		for n := range 8 {
			p := w.partition("t", n)
			left := p.Lane() == lane && why != change.StopPoison
			require.Equal(t, !left, copied[string(p.Append(nil))+"r001"] == "v", "%s, %s", p.Object, why)
		}
	}
}
