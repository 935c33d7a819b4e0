package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/queues"
)

// Q2: what a run takes for a message that two clients got within its timeout: the second of two answers, if it is earlier than
// clocks that are off explain, and neither a promotion nor a wrong clock does.
//
// Capability: Queues: Queues in the simulator.
func TestGotTwice(t *testing.T) {
	const timeout = 2 * time.Second
	earliest := timeout - 2*skewMax
	for name, c := range map[string]struct {
		at    time.Duration
		forks int
		wrong bool
		want  error
	}{
		"early":                    {at: earliest - 1, want: ErrGotTwice},
		"as clocks may be off":     {at: earliest},
		"later":                    {at: time.Hour},
		"early, behind a failover": {at: 1, forks: 1},
		"early, by a wrong clock":  {at: 1, wrong: true},
	} {
		s := newSim(Options{Seed: 1})
		s.skewMax = skewMax
		s.build([2]int{3, 3})
		a := newAccount("acct", s.locations[0])
		s.checkHidden(a, queues.MessageID{1}, hidden{timeout: timeout})
		s.now, a.forks = c.at, c.forks
		if c.wrong {
			s.locations[1].wrong = s.locations[1].members[0]
		}
		s.checkHidden(a, queues.MessageID{2}, hidden{timeout: timeout, forks: a.forks})
		s.checkHidden(a, queues.MessageID{1}, hidden{asked: s.now, timeout: timeout, forks: a.forks})
		require.ErrorIs(t, s.err, c.want, name)
		s.close()
	}
}

// Q2: the answers of two gets arrive in the other order than the gets were committed. Then the first get must have hidden
// the message no longer than until the answer of the second one, which came before its own.
//
// Capability: Queues: Queues in the simulator.
func TestGotTwiceInTheOrderOfTheGets(t *testing.T) {
	const timeout = 2 * time.Second
	latest := 3*time.Second - timeout + 2*skewMax
	for name, c := range map[string]struct {
		asked time.Duration
		want  error
	}{
		"the first hid it for longer":              {latest + 1, ErrGotTwice},
		"the first hid it until the second got it": {latest, nil},
	} {
		s := newSim(Options{Seed: 1})
		s.skewMax = skewMax
		s.build([2]int{3, 3})
		a := newAccount("acct", s.locations[0])
		second := hidden{asked: 3 * time.Second, timeout: timeout, got: 2}
		s.now = second.asked
		s.checkHidden(a, queues.MessageID{1}, second)
		s.now += 10 * time.Millisecond
		s.checkHidden(a, queues.MessageID{1}, hidden{asked: c.asked, timeout: timeout, got: 1})
		require.ErrorIs(t, s.err, c.want, name)
		require.Equal(t, uint32(2), a.hidden[queues.MessageID{1}].got, "what the second get hides counts from now on: %s", name)
		s.close()
	}
}

// What a range keeps of the gets that it answered, when it is recovered with a loss, is still hidden: to get it again early breaks
// the promise. A message of which the get is lost stands where it was before, and may be got again (Q2).
//
// Capability: Queues: Queues in the simulator.
func TestGotAgainAfterALoss(t *testing.T) {
	const timeout = 2 * time.Second
	for name, c := range map[string]struct {
		until geo.Timestamp
		want  error
	}{
		"the get is kept": {until: 100, want: ErrGotTwice},
		"the get is lost": {until: 101},
	} {
		s := newSim(Options{Seed: 1})
		s.planQueues(1)
		s.skewMax = skewMax
		s.build([2]int{3, 3})
		a := newAccount("acct", s.locations[0])
		s.accounts = append(s.accounts, a)
		at := queues.Subqueue{Queue: queues.Queue{Account: a.name, Name: "jobs"}}
		put := &queues.Put{Command: queues.Command{At: at}, ID: queues.MessageID{1}, PutOptions: queues.PutOptions{TTL: -1}}
		effect, err := put.Evaluate(partitionRows{p: at.Partition()}, 100)
		require.NoError(t, err)
		rows := map[string]string{}
		for _, op := range effect.Ops {
			rows[string(op.Row)] = string(op.Value)
		}
		for _, l := range s.locations {
			l.history[geo.FirstRange(geo.Queue)].m.parts[string(at.Partition().Append(nil))] = rows
		}
		h := s.locations[0].history[geo.FirstRange(geo.Queue)]
		s.checkHidden(a, put.ID, hidden{timeout: timeout, q: at.Queue, until: c.until})
		s.locations[1].history[h.id].loseHidden() // That of the other location is none of the account's.
		require.Len(t, a.hidden, 1)
		h.loseHidden()
		s.checkHidden(a, put.ID, hidden{timeout: timeout})
		require.ErrorIs(t, s.err, c.want, name)
		s.close()
	}
}
