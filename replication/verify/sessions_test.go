package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
)

func stopValue() []byte {
	return change.AppendStop(nil, change.Stop{Reason: change.StopForked, Here: geo.Head{Seq: 5}})
}

func everything() []Node {
	var all []Node
	for l := range geo.Lane(geo.LaneCount) {
		all = append(all, Node{Lane: l})
	}
	return all
}

// What is read in a second is bounded: a scan waits where it is ahead of its rate.
func TestPace(t *testing.T) {
	w := newWorld()
	w.advance = true
	for i := range 100 {
		w.both(rowKey("t", fmt.Sprint(i), "r"), fmt.Sprintf("%0100000d", i))
	}
	began := w.clock.Mono()
	w.c.BytesPerSecond = 1 << 20
	out := w.run(t)
	require.Empty(t, out.Differences)
	took := (w.clock.Mono() - began).Seconds()
	at := float64(out.Bytes) / (1 << 20)
	require.Greater(t, took, at-2) // A scan ends without a wait for its last MiB.
	require.Less(t, took, 2*at)    // Both ends move the one clock.
}

// A session that nobody asks ends, and so does its scan; a node that stops ends all sessions and waits
// for their scans.
func TestSessionsEnd(t *testing.T) {
	for _, how := range []string{"idle", "close"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlace()
				for i := range 40 {
					p.set(rowKey("t", fmt.Sprint(i), "r"), fmt.Sprintf("%0100000d", i))
				}
				s := NewSessions(Options{Stamp: p, Clock: clock.NewManual(time.Unix(1, 0))})
				a, err := s.Ask(t.Context(), testRange, &Question{Op: OpOpen, Account: testAccount, Epoch: testEpoch})
				require.NoError(t, err)
				_, err = s.Ask(t.Context(), testRange, &Question{Op: OpName, Session: a.Session, Prefixes: [][]byte{containerPrefix("t")}})
				require.NoError(t, err)
				q := &Question{Op: OpScan, Session: a.Session, Scan: &Scan{Number: 1, Want: WantSums, Nodes: everything(), BytesPerSecond: 1}}
				under, err := s.Ask(t.Context(), testRange, q) // One byte in a second: it waits for years.
				require.NoError(t, err)
				require.False(t, under.Done)
				require.NotZero(t, under.Bytes)
				if how == "idle" {
					time.Sleep(idleMax + time.Second)
				} else {
					require.NoError(t, s.Close())
				}
				synctest.Wait()
				require.Empty(t, s.open)
				after, err := s.Ask(t.Context(), testRange, q)
				require.NoError(t, err)
				require.True(t, after.Gone)
			})
		})
	}
}

// As many sessions as are allowed, and no more; each question is refused if it is malformed.
func TestSessionsAreBounded(t *testing.T) {
	s := NewSessions(Options{Stamp: newPlace(), Clock: clock.NewManual(time.Unix(1, 0))})
	open := &Question{Op: OpOpen, Account: testAccount, Epoch: testEpoch}
	var last *Answer
	for range sessionsMax {
		a, err := s.Ask(t.Context(), testRange, open)
		require.NoError(t, err)
		last = a
	}
	_, err := s.Ask(t.Context(), testRange, open)
	require.ErrorIs(t, err, errSessions)
	for _, q := range []Question{
		{Op: "other", Session: last.Session},
		{Op: OpScan, Session: last.Session},
		{Op: OpScan, Session: last.Session, Scan: &Scan{Number: 1, Want: "all", Nodes: everything()}},
		{Op: OpScan, Session: last.Session, Scan: &Scan{Number: 1, Want: WantRows, Nodes: []Node{{Lane: 32}}}},
		{Op: OpScan, Session: last.Session, Scan: &Scan{Number: 1, Want: WantRows, Nodes: []Node{{Depth: 9}}}},
		{Op: OpName, Session: last.Session, From: 1},
		{Op: OpName, Session: last.Session, Prefixes: make([][]byte, prefixesMax+1)},
	} {
		b, err := json.Marshal(q)
		require.NoError(t, err)
		_, err = s.Serve(t.Context(), testRange, b)
		require.Error(t, err, "%s", b)
	}
	gone, err := s.Ask(t.Context(), testRange+1, &Question{Op: OpName, Session: last.Session})
	require.NoError(t, err)
	require.True(t, gone.Gone, "the session of another range")
	_, err = s.Serve(t.Context(), testRange, []byte("{"))
	require.ErrorIs(t, err, errQuestion)
	require.NoError(t, s.Close())
}

// A comparison ends with its context, and leaves no session.
func TestRunEnds(t *testing.T) {
	w := newWorld()
	w.both(rowKey("t", "p", "r"), "v")
	ctx, cancel := context.WithCancel(t.Context())
	w.c.Progress = func(Progress) { cancel() }
	_, err := Run(ctx, w.c)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, w.source.open)
	require.Empty(t, w.receiver.open)
}

// Answers of the other location decode to a value or an error, whatever they are.
func FuzzAnswers(f *testing.F) {
	f.Add(appendTally(nil, nodeOf(3, 2, 1<<60), Tally{Sum{1, 2}, 3, 4}))
	f.Add(appendRow(nil, Row{[]byte("key"), Sum{1, 2}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tallies, err := parseTallies(b); err == nil && len(tallies) == 1 {
			for n, tally := range tallies {
				again, err := parseTallies(appendTally(nil, n, tally))
				require.NoError(t, err)
				require.Equal(t, tallies, again)
			}
		}
		if found, err := ParseSums(b); err == nil && len(found) == 1 {
			for key, sum := range found {
				again, err := ParseSums(appendRow(nil, Row{[]byte(key), sum}))
				require.NoError(t, err)
				require.Equal(t, found, again)
			}
		}
	})
}
