package ship

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
)

// history has the commit times of all records of each stream.
type history map[geo.Stream][]geo.Timestamp

// learn reads what the outbox has and h has not.
func (h history) learn(w *world) {
	m := w.leader().Machine
	heads, _ := m.Heads()
	for st, head := range heads {
		for geo.Seq(len(h[st])) < head.Seq {
			records, err := m.Outbox(st, geo.Seq(len(h[st]))+1, 1<<20)
			require.NoError(w.t, err)
			for _, b := range records {
				rec, err := change.ParseHeader(b)
				require.NoError(w.t, err)
				h[st] = append(h[st], rec.CommitTime)
			}
		}
	}
}

// check requires that nothing committed at or before the receiver's sync time of a stream is missing there.
func (h history) check(w *world) {
	p := w.receiver.Progress(w.receiver.src, cursor.EveryAccount)
	behind := map[geo.Stream]geo.Timestamp{}
	for _, s := range p.Streams {
		if s.Behind > 0 {
			behind[s.Stream] = s.Sync
		}
	}
	for st, times := range h {
		t, ok := behind[st]
		if !ok {
			t = p.Closed
		}
		if n := int(w.receiver.Applied(st).Seq); n < len(times) {
			require.Greater(w.t, times[n], t, "%s #%d is missing, the sync time is %d", st, n+1, t)
		}
	}
}

// Closed records never promise what is not there (R12, R13), whatever becomes of frames (property): random
// writes, with and without payload, from small frames and tiny bounds; publishes that are refused, fail,
// are stored although they failed, or are confirmed and lost; pushes that stand; new leaders; acknowledgements
// and pulls between. After each frame nothing at or before the receiver's sync time is missing; and at the end
// everything is there. A closed record that left out a held stream, or was ahead of its frame, fails here.
//
// Capability: Two locations: A backlog drains with Last Sync Time moving (R12).
func TestR12Honest(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 7))
	w := newWorld(t, Options{})
	w.gates("a", "b")
	parts := append(lanes("a")[:6], lanes("b")[:6]...)
	h := history{}
	for range 60 {
		w.open(Options{Bounds: Bounds{
			FrameBytesMax: 300 + rng.IntN(4000), QueueBytesMax: 2000 + rng.IntN(8000), AheadBytesMax: 1 + rng.IntN(8000),
			FlyingMax: 1 + rng.IntN(5), PushesMax: 1 + rng.IntN(3), FullBytesMax: 100 + rng.IntN(1000),
		}})
		for range 40 {
			w.play(rng, h, parts)
		}
	}
	w.refuse = nil
	for i := 0; w.receiver.syncTime() < lastOf(h) || i < 100; i++ {
		require.Less(t, i, 10_000)
		for _, done := range w.pushes {
			done(nil)
		}
		w.pushes = nil
		w.step(50 * time.Millisecond)
		w.arrive(nil)
		w.pull(h)
		h.check(w)
	}
	for st, times := range h {
		require.Len(t, times, int(w.receiver.Applied(st).Seq))
	}
}

func lastOf(h history) (t geo.Timestamp) {
	for _, times := range h {
		t = max(t, times[len(times)-1])
	}
	return t
}

// play does one thing at random.
func (w *world) play(rng *rand.Rand, h history, parts []keys.Partition) {
	switch rng.IntN(12) {
	case 0, 1, 2:
		var some []keys.Partition
		for range 1 + rng.IntN(6) {
			some = append(some, parts[rng.IntN(len(parts))])
		}
		w.write(rng.IntN(1000), rng.IntN(3) == 0, some...)
		h.learn(w)
	case 3:
		w.refuse = [...]error{nil, nil, bus.ErrFull, bus.ErrUnavailable}[rng.IntN(4)]
	case 4:
		w.pull(h)
	case 5:
		pushes := w.pushes
		w.pushes = nil
		for _, done := range pushes {
			if rng.IntN(3) == 0 {
				w.pushes = append(w.pushes, done)
				continue
			}
			done([...]error{nil, bus.ErrUnavailable}[rng.IntN(2)])
		}
	case 6, 7:
		flying := w.flying
		w.flying = nil
		for _, p := range flying {
			fate := rng.IntN(10)
			if fate > 1 { // Not lost.
				w.receiver.take(&p.frame)
				h.check(w)
			}
			p.done([...]error{bus.ErrFull, nil, bus.ErrUnavailable, nil, nil, nil, nil, nil, nil, nil}[fate])
		}
	default:
		w.step(time.Duration(rng.IntN(100)) * time.Millisecond)
	}
	h.check(w)
}

// pull gives the receiver what it asks for: the full closed record, and records behind its cursors.
func (w *world) pull(h history) {
	if w.receiver.unjoined > 0 {
		if c, err := w.ship.Full(); err == nil {
			w.receiver.unjoined = 0
			w.receiver.close(c)
			h.check(w)
		}
	}
	p := w.receiver.Progress(w.receiver.src, "")
	for st := range p.Behind() {
		records, err := w.leader().Machine.Outbox(st, p.Cursors()[st].Seq+1, 2000)
		require.NoError(w.t, err)
		w.receiver.take(&change.Frame{Records: records})
	}
	w.acknowledge()
}
