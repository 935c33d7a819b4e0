package ship

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// forget has an account leave its epoch for one that the other location has, and its former streams forgotten.
type forget struct{ account geo.Account }

func (c forget) Evaluate(tx *ranges.Tx) error {
	tx.SetGate(c.account, change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true})
	_, err := tx.EndStreams(c.account)
	return err
}

// forgets is the second group of it: what is trimmed is forgotten.
type forgets struct{ account geo.Account }

func (c forgets) Evaluate(tx *ranges.Tx) error {
	tx.ForgetStreams(c.account, geo.Epoch{Number: 2, Location: "north"})
	return nil
}

// R13: nothing stands for a stream once the range forgets it. Its records may be read ahead from the outbox, queued,
// held for payload, acknowledged and not trimmed, or on the line. Afterwards the other streams go on, no full closed
// record names it, and none is repeated for it. A leader that begins does not know it.
func TestR13ForgottenStreamsAreNotNamed(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(w *world){
		"at rest": func(w *world) { w.drain(nil) },
		"acknowledged": func(w *world) {
			w.drain(nil)
			w.acknowledge()
		},
		"queued": func(w *world) { w.refuse = errors.New("refused") },
		"in a backlog": func(w *world) {
			w.refuse = errors.New("refused")
			w.step(time.Millisecond)
			w.write(3000, false, lanes("gone")...)
			w.step(time.Millisecond)
		},
		"read ahead": func(w *world) {
			w.step(time.Millisecond)
			w.step(time.Millisecond)
			require.NotNil(w.t, w.ship.backlog)
		},
		"held": func(w *world) {
			w.drain(nil)
			w.write(10, true, lanes("gone")[:3]...)
			w.write(10, false, lanes("gone")...)
			w.drain(nil)
			require.NotEmpty(w.t, w.pushes)
		},
		"on the line": func(w *world) { w.step(time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Bounds: Bounds{FrameBytesMax: 2000, QueueBytesMax: 4000, AheadBytesMax: 3000, FlyingMax: 2, PushesMax: 1}})
			w.gates("gone", "stays")
			w.write(100, false, append(lanes("gone"), lanes("stays")...)...)
			before(w)
			for _, cmd := range []ranges.Command{forget{"gone"}, forgets{"gone"}} {
				stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), cmd)
			}
			heads, _ := w.leader().Machine.Heads()
			require.Len(t, heads, geo.LaneCount)
			w.refuse = nil
			pushes := w.pushes
			w.pushes = nil
			for _, done := range pushes {
				done(nil)
			}
			w.write(100, false, lanes("stays")...)
			w.write(100, false, lanes("gone")...)
			w.now += time.Second // After the pause of a failed publish.
			w.drain(nil)
			w.acknowledge()
			for _, p := range lanes("stays") {
				st := geo.Stream{Account: "stays", Epoch: north1(), Range: geo.FirstRange(geo.Table), Lane: p.Lane()}
				require.EqualValues(t, 2, w.receiver.Applied(st).Seq, "%s", st)
			}
			former := func(h change.StreamHead) bool { return h.Account == "gone" && h.Epoch == north1() }
			full, err := w.ship.Full()
			require.NoError(t, err)
			require.Len(t, full.Heads, 2*geo.LaneCount)
			for _, h := range full.Heads {
				require.False(t, former(h), "%+v", h)
			}
			require.Empty(t, w.ship.holds.of)
			require.Eventually(t, func() bool { // What is acknowledged is trimmed, and a full closed record is due.
				w.step(10 * time.Second)
				w.drain(func(f change.Frame) { require.False(t, f.Closed.Full, "nothing is missing at the receiver") })
				return len(w.ship.acked) == 0 && len(w.ship.named) == 2*geo.LaneCount
			}, time.Minute, time.Millisecond)
			require.Len(t, w.ship.View("gone").Streams, geo.LaneCount)

			w.open(Options{})
			frames := 0
			w.drain(func(f change.Frame) {
				frames++
				for _, h := range f.Closed.Heads {
					require.False(t, former(h), "%+v", h)
				}
			})
			require.NotZero(t, frames)
		})
	}
}

// R16: a stop that was on its way as its stream ended stops nothing.
//
// Capability: Two locations: Forks and losses are durable at the receiver and at the source (R16).
// Capability: Two locations: Disks of a location that were set back cannot make Last Sync Time wrong (R12, R16).
// Capability: Two locations: A fork or a loss is settled by stream, for the primary's side (R16).
func TestR16EndedStreamIsNotStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.gates("gone")
	w.write(10, false, lanes("gone")[:1]...)
	st := geo.Stream{Account: "gone", Epoch: north1(), Range: geo.FirstRange(geo.Table), Lane: lanes("gone")[0].Lane()}
	late := &stopCommand{m: w.leader().Machine, cursors: []StreamCursor{{Stream: st, Head: geo.Head{Seq: 7, Hash: 7}}}}
	for _, cmd := range []ranges.Command{forget{"gone"}, late, forgets{"gone"}, late} {
		stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), cmd)
		require.Empty(t, w.leader().Machine.Stops())
	}
	require.Zero(t, w.leader().Machine.Head(st))
}
