package secondary

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// R12, R13: a range here that was recovered with loss has lost records that it had acknowledged, which closed records since
// leave out. A full one of before, which the bus brings again, names none of them, and those after it join it: none is
// taken before a full one of after all that can have been acknowledged.
//
// Capability: Two locations: Which range holds what is asked of one table (R14).
func TestR13ChainBeginsAfterARecovery(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := stamptest.New(t, "south", geo.Table)
	id := geo.FirstRange(geo.Table)
	applier, src := NewApplier(s, route.First()), geo.SourceRange{Origin: "north", Range: id}
	st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: id}
	gate := change.Gate{Epoch: st.Epoch, Role: change.RoleSecondary, Open: true}
	stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
	m := s.Leader(id).Machine
	recovery, err := replica.Recovery(0).Next(1)
	require.NoError(t, err)
	require.NoError(t, m.Reform(recovery.Members(), 0))
	var from compared
	stamptest.Submit(t, s, id, &from)
	require.GreaterOrEqual(t, geo.Timestamp(from), geo.TimestampOf(began.Add(2*geo.ClockOffMax)), "by the clock of the leader")
	at := func(d time.Duration) geo.Timestamp { return geo.Timestamp(from) + geo.Timestamp(d.Microseconds()) }
	take := func(full bool, from, to time.Duration, heads ...change.StreamHead) bool {
		t.Helper()
		c := &change.Closed{Origin: "north", Range: id, Full: full, T: at(to), Heads: heads}
		if full {
			c.Descriptor = 1
		} else {
			c.T0 = at(from)
		}
		b := &receive.Batch{Source: src, Closed: c}
		submit(t, func(done func(error)) { applier.Apply(b, done) })
		return b.ClosedTaken
	}
	require.False(t, take(true, 0, -time.Minute), "of before the record that was lost")
	require.False(t, take(false, -time.Minute, -time.Second), "leaves out the record that was lost")
	require.False(t, take(true, 0, -time.Microsecond))
	lost := change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: st.Lane, Seq: 1, Hash: 7}
	require.Eventually(t, func() bool { return take(true, 0, 0, lost) }, time.Minute, 10*time.Millisecond, "once its time is not ahead of the clock (R6)")
	require.True(t, take(false, 0, time.Millisecond))
	p := m.Progress(src, st.Account)
	require.Len(t, p.Streams, 1)
	require.EqualValues(t, 1, p.Streams[0].Behind)
	require.Zero(t, p.Streams[0].Sync, "the record that was lost is not here")
}

// compared is a command that has the gates of a recovered range as compared, and reads from which closed time on a chain may
// begin.
type compared geo.Timestamp

func (c *compared) Evaluate(tx *ranges.Tx) error {
	tx.Compared(tx.Incarnation())
	*c = compared(tx.ClosesFrom())
	return nil
}
