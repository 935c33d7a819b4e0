package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/replication/bus"
)

// away is a bus that can be away.
type away struct {
	bus.Consumer
	err error
}

func (a *away) Poll(limit int) ([]bus.Message, error) {
	if a.err != nil {
		return nil, a.err
	}
	return a.Consumer.Poll(limit)
}

// The silence of a source, the absence of the stream's servers and a stream behind its
// closed head are counted while this process runs: after a pause, however long,
// no alarm is raised and nothing is pulled; after as long a silence while it ran they are.
func TestPauseIsNobodysSilence(t *testing.T) {
	w := newWorld(t, 1)
	servers := &away{Consumer: w.durable}
	w.durable = servers
	r := w.receiver()
	r.o.SilenceAfter = 5 * time.Second
	runFor := func(d time.Duration) {
		for end := w.clk.Mono() + d; w.clk.Mono() < end; w.clk.Advance(50 * time.Millisecond) {
			r.Step(w.clk.Mono())
			w.deliverSome()
		}
	}
	pause := func() {
		w.clk.Advance(time.Hour)
		r.Step(w.clk.Mono())
	}
	w.write()
	runFor(2 * time.Second)
	require.Empty(t, w.alarms)

	pause()
	require.Empty(t, w.alarms, "the source could not be reached")
	servers.err = bus.ErrUnavailable
	runFor(time.Second)
	pause()
	require.Empty(t, w.alarms, "the servers could not be asked")
	runFor(5 * time.Second)
	require.Equal(t, map[string]int{AlarmSilence: 1, AlarmUnavailable: 1}, w.alarms)

	servers.err = nil
	clear(w.alarms)
	for st, h := range w.heads {
		w.closedH[st] = h.Seq + 1
		w.record(st, 0)
	}
	runFor(200 * time.Millisecond)
	pause()
	require.Empty(t, r.order[0].pulls.of, "what is missing may wait in the connection")
	runFor(time.Second)
	require.NotZero(t, w.alarms[AlarmGap])
}
