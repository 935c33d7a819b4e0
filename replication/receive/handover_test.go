package receive

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Receivers that follow each other on one durable consumer, and overlap, apply each record once
// and in order: whatever they fetched and left, whatever the AckAll of another one acknowledged
// for them, whichever answers are lost, and while a range stands and is left to the pull. In the end every record is applied and covered by a
// closed record, and neither the outbox nor the bus holds any (R14, R15).
// It holds invariant 2.
func TestHandover(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			receiver := func() *Receiver {
				o := w.options(testRange, otherRange)
				o.PendingBytesMax, o.StandAfter = 1<<10, 50*time.Millisecond
				return New(o)
			}
			running := []*Receiver{receiver()}
			var overlaps, handovers int
			for range 1500 {
				w.clk.Advance(time.Duration(w.rng.IntN(20)) * time.Millisecond)
				if w.rng.IntN(4) == 0 {
					w.write()
					w.writeTo(otherRange, 1)
				}
				switch n := w.rng.IntN(100); {
				case n == 0 && len(running) < 3:
					running = append(running, receiver())
				case n == 1 && len(running) > 1:
					running = running[1:] // It stops with what it holds, and what it asked for comes too late.
					handovers++
				case n == 2 && len(running) == 1:
					running[0] = receiver() // None in between.
					handovers++
				case n == 3:
					w.mute[testRange] = true
				case n < 6:
					w.unmute(testRange)
				}
				if len(running) > 1 {
					overlaps++
				}
				for _, r := range running {
					if w.rng.IntN(2) == 0 {
						r.Step(w.clk.Mono())
					}
				}
				w.deliverSome()
			}
			require.Positive(t, overlaps)
			require.Positive(t, handovers)
			require.Positive(t, w.alarms[AlarmStands])
			w.unmute(testRange)
			w.drain(running[len(running)-1:])
			w.requireOnce()
			require.Zero(t, w.alarms[AlarmFork]+w.alarms[AlarmChecksum]+w.alarms[AlarmEpoch]+w.alarms[AlarmIncarnation])
		})
	}
}

// drain lets receivers go on until everything has arrived. An idle range commits closed records
// too: they show what a receiver dropped and did not live to pull.
func (w *world) drain(running []*Receiver) {
	for i := range 20000 {
		if w.whole() == "" {
			return
		}
		if i%100 == 99 {
			for _, id := range slices.Sorted(maps.Keys(w.closedT)) {
				w.writeTo(id, 0)
			}
		}
		w.clk.Advance(10 * time.Millisecond)
		for _, r := range running {
			r.Step(w.clk.Mono())
		}
		w.deliverSome()
	}
	w.t.Fatal("never whole: ", w.whole())
}

// Run ends with its context while everything that it asked for is still on its way, and
// answers that come afterwards change nothing and are harmless.
func TestRunEndsWithAnswersUnderway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.write()
		r := w.receiver()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			require.NoError(t, r.Run(ctx))
		}()
		synctest.Wait()
		require.NotEmpty(t, w.waiting, "it asked for something")
		cancel()
		<-ended
		for len(w.waiting) > 0 {
			w.deliverSome()
		}
		require.Positive(t, w.bus.Stored(), "nothing was acknowledged that is not known here")
		w.drain([]*Receiver{w.receiver()})
		w.requireOnce()
	})
}
