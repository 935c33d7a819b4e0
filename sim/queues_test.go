package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/services/queues"
)

// Q2: what a run takes for a message that two clients got within its timeout: the second of two answers, if it is earlier than
// clocks that are off explain, and neither a promotion nor a wrong clock does.
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
		s.checkHidden(a, queues.MessageID{1}, 0, timeout, 0)
		s.now, a.forks = c.at, c.forks
		if c.wrong {
			s.locations[1].wrong = s.locations[1].members[0]
		}
		s.checkHidden(a, queues.MessageID{2}, 0, timeout, a.forks)
		s.checkHidden(a, queues.MessageID{1}, s.now, timeout, a.forks)
		require.ErrorIs(t, s.err, c.want, name)
		s.close()
	}
}
