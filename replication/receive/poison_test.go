package receive

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/change"
)

// later turns a record into one of a later version, whose checksum is right.
func later(b []byte) []byte {
	b[0]++
	n := len(b) - 4
	binary.LittleEndian.PutUint32(b[n:], crc.Of(b[:n]))
	return b
}

// runFor steps a receiver, with all that it asks for, while time passes.
func (w *world) runFor(r *Receiver, took time.Duration, each func()) {
	for range took / (10 * time.Millisecond) {
		w.clk.Advance(10 * time.Millisecond)
		each()
		r.Step(w.clk.Mono())
		w.deliverSome()
	}
}

// A record that cannot be decoded, of a later version or damaged at the source, stops its own stream for
// good, with its reason. The source learns of it. Everything else of its frame, its range and another
// range goes on, and the record is pulled no more (R11).
func TestR11OneRecordStopsItsStream(t *testing.T) {
	for reason, spoil := range map[change.StopReason]func([]byte) []byte{
		change.StopVersion: later,
		change.StopPoison:  func(b []byte) []byte { b[20]++; return b },
	} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(reason, seed), func(t *testing.T) {
				w := newWorld(t, seed)
				bad, named := testStream(testRange, 2), 0
				w.stops = map[geo.Stream]change.Stop{}
				w.spoil = func(st geo.Stream, n geo.Seq, b []byte, _ bool) []byte {
					if st == bad && n >= 3 { // All that follow too, as after an upgrade.
						return spoil(b)
					}
					return b
				}
				w.compare = func(cursors map[geo.Stream]Cursor, _ bool) (out []Mismatch) {
					if why := cursors[bad].Stop; why != change.NotStopped || named > 0 && len(cursors) > 0 {
						named++
						out = append(out, Mismatch{Stream: bad, Reason: reason, There: w.heads[bad], Stopped: named > 2})
					}
					return out
				}
				r := New(w.options(testRange, otherRange))
				w.runFor(r, 20*time.Second, func() {
					if w.rng.IntN(10) == 0 {
						w.write()
						w.writeTo(otherRange, 1)
					}
				})
				require.Equal(t, reason, w.stops[bad].Reason)
				require.Len(t, w.stops, 1)
				require.EqualValues(t, 3, w.stops[bad].There.Seq)
				require.EqualValues(t, 2, w.cursors[bad].Seq)
				require.Equal(t, 1, w.alarms[reason.String()])
				require.Greater(t, named, 2, "the source has stopped it")
				pulls := w.pulls[bad]
				for st := range w.heads {
					if st != bad {
						require.Greater(t, w.heads[st].Seq, geo.Seq(20))
					}
				}
				w.heads[bad], w.outbox[bad] = w.cursors[bad], nil // All but this is whole in the end.
				w.drain([]*Receiver{r})
				require.Equal(t, pulls, w.pulls[bad])
			})
		}
	}
}

// A stream that an operator lets go on, as after an upgrade, is pulled within seconds, though nothing of
// it comes over the bus (R11).
func TestR11ResumedStreamIsPulled(t *testing.T) {
	for seed := range uint64(5) {
		w := newWorld(t, seed)
		bad := testStream(testRange, 2)
		w.stops = map[geo.Stream]change.Stop{}
		w.spoil = func(st geo.Stream, n geo.Seq, b []byte, _ bool) []byte {
			if st == bad && n == 3 {
				return later(b)
			}
			return b
		}
		r := w.receiver()
		w.runFor(r, 10*time.Second, func() {
			if w.now < 100 {
				w.write()
			}
		})
		require.Contains(t, w.stops, bad)
		w.spoil = nil
		delete(w.stops, bad)
		w.compare = func(map[geo.Stream]Cursor, bool) []Mismatch { // The source is let go on later.
			return []Mismatch{{Stream: bad, Reason: change.StopVersion, There: w.heads[bad], Stopped: true}}
		}
		w.runFor(r, 2*stopsEvery, func() {})
		require.Equal(t, w.heads[bad], w.cursors[bad])
		w.drain([]*Receiver{r})
	}
}

// A record that was damaged on the way, over the bus and again when it was pulled, comes whole in the
// end: nothing is stopped (R11).
func TestR11DamageOnTheWayStopsNothing(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.spoil = func(_ geo.Stream, n geo.Seq, b []byte, pulled bool) []byte {
				if !pulled && n%3 == 0 || pulled && w.rng.IntN(3) == 0 {
					b[w.rng.IntN(len(b))] ^= byte(1 + w.rng.IntN(255))
				}
				return b
			}
			r := w.receiver()
			w.runFor(r, 10*time.Second, func() {
				if w.rng.IntN(10) == 0 {
					w.write()
				}
			})
			w.drain([]*Receiver{r})
			w.requireOnce()
			require.Positive(t, w.alarms[AlarmChecksum])
		})
	}
}

// A record that the evaluating node cannot decode stops its stream too, once it was pulled and
// evaluated again (R11).
func TestR11UndecodableWhereItIsEvaluated(t *testing.T) {
	for outcome, reason := range map[Outcome]change.StopReason{Undecodable: change.StopPoison, UnknownVersion: change.StopVersion} {
		w := newWorld(t, 1)
		bad := testStream(testRange, 1)
		w.stops = map[geo.Stream]change.Stop{}
		w.outcome = func(rec *Record) Outcome {
			if rec.Record.Stream() == bad && rec.Record.Seq == 2 {
				return outcome
			}
			return 0
		}
		r := w.receiver()
		w.runFor(r, 20*time.Second, func() {
			if w.rng.IntN(10) == 0 {
				w.write()
			}
		})
		require.Equal(t, reason, w.stops[bad].Reason)
		require.EqualValues(t, 2, w.stops[bad].There.Seq)
		w.heads[bad], w.outbox[bad] = w.cursors[bad], nil
		w.drain([]*Receiver{r})
	}
}

// A record below the gate's epoch is not pulled again, though closed records name its stream, and the
// bus brings more of it (R7).
func TestR7RefusedIsNotPulledAgain(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			old := testStream(testRange, 1)
			w.refuse = map[geo.Stream]bool{}
			r := w.receiver()
			w.runFor(r, 30*time.Second, func() {
				w.refuse[old] = w.cursors[old].Seq > 3
				if w.rng.IntN(10) == 0 {
					w.write()
				}
				if !w.refuse[old] {
					w.pulls[old] = 0
				}
			})
			require.Positive(t, w.alarms[AlarmEpoch])
			require.Greater(t, w.closedH[old], w.cursors[old].Seq)
			require.LessOrEqual(t, w.pulls[old], 2, "one that was under way, and the one that shows it")
		})
	}
}
