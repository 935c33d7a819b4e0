package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

// world ships the range of the tables of a stamp over a bus that the test plays, to a receiver that
// keeps cursors alone.
type world struct {
	t     *testing.T
	stamp *stamp.Stamp
	ship  *Shipper
	now   time.Duration
	clock *clock.Manual

	// refuse is what the bus answers at once, in place of taking a publish.
	refuse error
	// flying are the publishes and pushes that the test has not answered.
	flying []publish
	pushes []func(error)
	// published counts all publishes that the bus took, and their bytes.
	published, bytes int
	receiver         *receiver
}

type publish struct {
	frame change.Frame
	size  int
	done  func(error)
}

func newWorld(t *testing.T, o Options) *world {
	w := &world{t: t, stamp: stamptest.New(t, "north", geo.Table), clock: clock.NewManual(time.Unix(0, 0)), receiver: newReceiver(t)}
	w.open(o)
	return w
}

// open begins with a new shipper, as a new process does.
func (w *world) open(o Options) {
	w.flying, w.pushes = nil, nil
	o.Location, o.Range, o.Publisher, o.Pusher, o.Clock = "north", w.leader(), w, w, w.clock
	o.Logger = slog.New(slog.DiscardHandler)
	w.ship = New(o)
}

func (w *world) leader() *ranges.Range { return leaderOf(w.t, w.stamp) }

// Publish implements bus.Publisher.
func (w *world) Publish(subject string, data []byte, done func(error)) error {
	if w.refuse != nil {
		return w.refuse
	}
	require.LessOrEqual(w.t, len(data), w.MaxPayload())
	require.Equal(w.t, "geo.north.table.4", subject)
	f, err := change.ParseFrame(data)
	require.NoError(w.t, err)
	w.published++
	w.bytes += len(data)
	w.flying = append(w.flying, publish{f, len(data), done})
	return nil
}

// MaxPayload implements bus.Publisher.
func (w *world) MaxPayload() int { return 8 << 20 }

// Close implements bus.Publisher.
func (w *world) Close() error { return nil }

// Push implements PayloadPusher.
func (w *world) Push(_ []extent.Ref, done func(error)) { w.pushes = append(w.pushes, done) }

// step lets time pass and steps the shipper once. What it lets fall out has done so at the return.
func (w *world) step(pass time.Duration) time.Duration {
	w.now += pass
	next := w.ship.Step(w.now)
	k := w.ship.keeper
	require.Eventually(w.t, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return !k.flying
	}, time.Minute, 100*time.Microsecond)
	return next
}

// arrive answers every publish under way: stored, and applied by the receiver. check sees each frame
// once it is applied. It returns the number of frames.
func (w *world) arrive(check func(change.Frame)) int {
	flying := w.answer(nil)
	for _, p := range flying {
		w.receiver.take(&p.frame)
		if check != nil {
			check(p.frame)
		}
	}
	return len(flying)
}

// answer answers every publish under way.
func (w *world) answer(err error) []publish {
	flying := w.flying
	w.flying = nil
	for _, p := range flying {
		p.done(err)
	}
	return flying
}

// drain steps until nothing is left to publish, and gives each frame to check.
func (w *world) drain(check func(change.Frame)) {
	for quiet := 0; quiet < 3; quiet++ {
		w.step(2 * time.Millisecond)
		if w.arrive(check) > 0 {
			quiet = 0
		}
	}
}

// acknowledge reports the receiver's cursors.
func (w *world) acknowledge() {
	var a Acknowledgement
	for st, head := range w.receiver.Progress(w.receiver.src, cursor.EveryAccount).Cursors() {
		a.Cursors = append(a.Cursors, StreamCursor{Stream: st, Head: head})
	}
	odd, err := w.ship.Acknowledge(a)
	require.NoError(w.t, err)
	for _, m := range odd {
		require.Equal(w.t, Mismatch{m.Stream, change.StopBudget, m.Here, true}, m)
	}
}

// north1 is the epoch of all streams here.
func north1() geo.Epoch { return geo.Epoch{Number: 1, Location: "north"} }

// gates opens numbered gates.
func (w *world) gates(accounts ...geo.Account) {
	var cmd commands
	for _, a := range accounts {
		cmd = append(cmd, stamptest.Gate{Account: a, Gate: change.Gate{Epoch: north1(), Role: change.RolePrimary, Open: true, Numbered: true}})
	}
	stamptest.Submit(w.t, w.stamp, geo.FirstRange(geo.Table), cmd)
}

// write commits one record for each partition, in one group.
func (w *world) write(size int, chunks bool, partitions ...keys.Partition) {
	var payload []byte
	if chunks {
		payload = []byte("payload")
	}
	w.writePayload(size, payload, partitions...)
}

// writePayload commits one record for each partition, in one group, that names one chunk if there is payload.
func (w *world) writePayload(size int, payload []byte, partitions ...keys.Partition) {
	var cmd commands
	for _, p := range partitions {
		rec := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: make([]byte, size)}}}
		if payload != nil {
			ref := extent.NewRef(extent.ChunkID{byte(len(payload))}, payload)
			require.NoError(w.t, w.stamp.PutChunk(w.t.Context(), ref, payload))
			rec.Chunks = []extent.Ref{ref}
		}
		cmd = append(cmd, stamptest.Change{Partition: p, Record: rec})
	}
	stamptest.Submit(w.t, w.stamp, geo.FirstRange(geo.Table), cmd)
}

// commands are evaluated together.
type commands []ranges.Command

func (c commands) Evaluate(tx *ranges.Tx) error {
	for _, cmd := range c {
		if err := cmd.Evaluate(tx); err != nil {
			return err
		}
	}
	return nil
}

// lanes returns a partition of an account for each lane.
func lanes(a geo.Account) []keys.Partition {
	out := make([]keys.Partition, geo.LaneCount)
	for i, found := 0, 0; found < geo.LaneCount; i++ {
		p := keys.Partition{Service: geo.Table, Account: a, Container: "t", Object: fmt.Sprint(i)}
		if out[p.Lane()].Account == "" {
			out[p.Lane()] = p
			found++
		}
	}
	return out
}

// receiver applies frames as the secondary does: cursors and closed times, no data. It pulls nothing.
type receiver struct {
	t     *testing.T
	store *state.Store
	*cursor.Received
	src geo.SourceRange
	// unjoined counts closed records that did not continue the chain.
	unjoined int
	// doubled counts the bytes of records that had arrived before.
	doubled int
}

func newReceiver(t *testing.T) *receiver {
	store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	r, err := cursor.Open(geo.FirstRange(geo.Table), store)
	require.NoError(t, err)
	return &receiver{t: t, store: store, Received: r, src: geo.SourceRange{Origin: "north", Range: geo.FirstRange(geo.Table)}}
}

// take applies what fits of a frame.
func (r *receiver) take(f *change.Frame) {
	for _, b := range f.Records {
		rec, err := change.ParseRecord(b)
		require.NoError(r.t, err)
		at := r.Applied(rec.Stream())
		if rec.Seq <= at.Seq {
			r.doubled += len(b)
		}
		if at.Precedes(rec.Seq, rec.Prev) {
			require.NoError(r.t, r.ApplyRecord(&rec, b))
		}
	}
	if f.Closed != nil {
		r.close(f.Closed)
	}
}

func (r *receiver) close(c *change.Closed) {
	known := r.Known(r.src)
	if known.Stale(c) {
		return
	}
	if !known.Joins(c, func() geo.Timestamp { return 0 }) {
		r.unjoined++
		return
	}
	b := r.store.NewBatch()
	require.NoError(r.t, errors.Join(r.ApplyClosed(b, c), b.Close()))
}

// syncTime is the least sync time of all streams: what Last Sync Time would be.
func (r *receiver) syncTime() geo.Timestamp { return r.syncTimeOf(cursor.EveryAccount) }

// syncTimeOf is the same of one account.
func (r *receiver) syncTimeOf(a geo.Account) geo.Timestamp {
	p := r.Progress(r.src, a)
	t := p.Closed
	for _, s := range p.Streams {
		if s.Behind > 0 {
			t = min(t, s.Sync)
		}
	}
	return t
}

// lastCommit is the commit time of a frame's last record.
func lastCommit(t *testing.T, f *change.Frame) geo.Timestamp {
	h, err := change.ParseHeader(f.Records[len(f.Records)-1])
	require.NoError(t, err)
	return h.CommitTime
}

var _ bus.Publisher = (*world)(nil)
