package transport

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/kv"
)

// R2: a process that is going to stop has the others lead its ranges while commands come. No command is unknown. In
// it nothing leads any more; a request finds no leader until another node leads. A command that cannot be forwarded
// is refused at once, with nothing done, and not after the wait for a leader.
//
// Capability: Operation: SIGTERM drains a node and a gateway.
func TestR2StepDown(t *testing.T) {
	s := newStamps(t, nil)
	lead := s.leader()
	s.submit(lead, openGate{})
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	loading, halt := context.WithCancel(ctx)
	defer halt()
	var load sync.WaitGroup
	for c := range 4 {
		load.Go(func() {
			for i := 0; loading.Err() == nil; i++ {
				if _, here := s.by[lead].LeaderNode(testRange); !here {
					return // As a request that waits, its body unread.
				}
				if err := s.by[lead].Submit(ctx, testRange, put{c*10_000 + i}); err != nil {
					require.ErrorIs(t, err, kv.ErrBusy)
				}
			}
		})
	}
	require.Empty(t, s.by[lead].StepDown(ctx))
	halt()
	load.Wait()
	next := s.leader()
	require.NotEqual(t, lead, next)
	require.Nil(t, s.by[lead].Leader(testRange))
	began := time.Now()
	require.ErrorIs(t, s.by[lead].Submit(ctx, testRange, put{90_000}), kv.ErrBusy)
	require.Less(t, time.Since(began), 4*time.Second, "a command waits 5 s for a leader")
	s.submit(next, put{90_001})
}

// While the leader of a process steps down, that process names no leader: requests wait there for the next one, and are not
// served by one that holds them.
func TestSteppingDownNamesNoLeader(t *testing.T) {
	s := newStamps(t, nil)
	lead := s.leader()
	s.submit(lead, openGate{})
	r := s.by[lead].Leader(testRange)
	for id := range s.by { // Nobody takes the leadership, so that the state lasts.
		if id != lead {
			s.by[id].Node(id).Range(testRange).Leave()
		}
	}
	r.Leave()
	require.True(t, r.SteppingDown())
	to, known := s.by[lead].LeaderNode(testRange)
	require.False(t, known)
	require.Zero(t, to)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, []geo.RangeID{testRange}, ofTest(s.by[lead].StepDown(ended)), "it is not waited for longer than ctx")
	require.False(t, r.Stuck(), "an election timeout and more has to pass before")
	require.Eventually(t, r.Stuck, testWait, time.Millisecond, "it has asked both")
	to, known = s.by[lead].LeaderNode(testRange)
	require.True(t, known)
	require.Equal(t, lead, to, "it goes on to lead")
	require.Equal(t, []geo.RangeID{testRange}, ofTest(s.by[lead].StepDown(t.Context())))
}

// ofTest keeps the test's range.
func ofTest(list []geo.RangeID) (kept []geo.RangeID) {
	for _, id := range list {
		if id == testRange {
			kept = append(kept, id)
		}
	}
	return kept
}
