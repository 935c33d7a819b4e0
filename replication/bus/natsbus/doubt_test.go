package natsbus

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/replication/bus"
)

// Each way in which a delivered message can contradict those before is distinguished from the
// others, and what an honest stream may do raises nothing: deliver again, give a
// later number to what a slower clock stored, and skip a probe.
func TestCheckDelivered(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	seen := position{7, at(5)}
	for _, tt := range []struct {
		name            string
		seen            position
		fresh           uint64
		probes          []uint64
		seq             uint64
		stored          time.Time
		again           bool
		after           position
		rolled, damaged bool
	}{
		{name: "the first", seq: 7, stored: at(1), after: position{7, at(1)}},
		{name: "the next", seen: seen, fresh: 7, seq: 8, stored: at(6), after: position{8, at(6)}},
		{name: "the next, by a slower clock", seen: seen, fresh: 7, seq: 8, stored: at(2), after: position{8, at(5)}},
		{name: "again", seen: seen, fresh: 7, seq: 3, stored: at(2), again: true, after: seen},
		{name: "the last again", seen: seen, fresh: 7, seq: 7, stored: at(5), again: true, after: seen},
		{name: "once more from behind the acknowledged", seen: seen, fresh: 3, seq: 4, stored: at(2), after: seen},
		{name: "behind two probes", seen: seen, fresh: 7, probes: []uint64{5, 8, 9}, seq: 10, stored: at(6), after: position{10, at(6)}},
		{name: "an old number, stored later", seen: seen, fresh: 6, seq: 7, stored: at(6), after: seen, rolled: true},
		{name: "one missing", seen: seen, fresh: 7, seq: 9, stored: at(6), after: position{9, at(6)}, damaged: true},
		{name: "one missing of those seen before", seen: seen, fresh: 3, seq: 5, stored: at(3), after: seen, damaged: true},
		{name: "one missing beside a probe", seen: seen, fresh: 7, probes: []uint64{8}, seq: 10, stored: at(6), after: position{10, at(6)}, damaged: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			damaged := false
			o := Options{Alarm: func(reason string) { damaged = reason == AlarmDamaged }}
			q := &Consumer{o: o.withDefaults(), seen: tt.seen, fresh: tt.fresh, probes: tt.probes}
			err := q.checkDelivered(bus.Message{Seq: tt.seq, Redelivered: tt.again}, tt.stored)
			if tt.rolled {
				require.ErrorIs(t, err, errRolledBack)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tt.damaged, damaged)
			require.Equal(t, tt.after, q.seen)
		})
	}
}

// A stream that ends before what was seen of it is rolled back when it says so twice; one in
// several servers when it says so for as long as a new leader may take to catch up, in which
// a pause of this process does not count.
func TestCheckEnd(t *testing.T) {
	q := &Consumer{incarnation: time.Unix(1, 0), seen: position{seq: 7}, attempts: clock.NewRunning(retryLast)}
	end := func(now time.Duration, made int64, last uint64) error {
		return q.checkEnd(now, time.Unix(made, 0), last)
	}
	require.NoError(t, end(1, 1, 7))
	require.ErrorIs(t, end(2, 1, 6), errLost)
	require.NoError(t, end(3, 1, 8))
	require.ErrorIs(t, end(4, 1, 6), errLost)
	require.ErrorIs(t, end(5, 1, 6), errRolledBack)
	q.o.Replicas = 3 // A leader that was just elected catches up.
	require.ErrorIs(t, end(6, 1, 6), errLost)
	require.ErrorIs(t, end(6+retryLast, 1, 6), errLost)
	require.ErrorIs(t, end(6+2*retryLast, 1, 6), errLost)
	require.ErrorIs(t, end(6+endGrace-1, 1, 6), errLost)
	require.ErrorIs(t, end(6+endGrace, 1, 6), errRolledBack)
	require.NoError(t, end(7+endGrace, 2, 0), "another incarnation")

	const paused = 8 + endGrace + time.Hour
	require.ErrorIs(t, end(8+endGrace, 1, 6), errLost)
	require.ErrorIs(t, end(paused, 1, 6), errLost, "the process stood still")
	require.ErrorIs(t, end(paused+endGrace/4, 1, 6), errLost)
	require.ErrorIs(t, end(paused+2*endGrace/4, 1, 6), errLost)
	require.ErrorIs(t, end(paused+3*endGrace/4, 1, 6), errLost)
	require.ErrorIs(t, end(paused+endGrace, 1, 6), errRolledBack)
}

// Messages that a consumer had acknowledged are gone, their numbers are given again: the
// store was put back while the connections stood. Nothing that comes then is taken for
// what was acknowledged before.
func TestRolledBack(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	alarms := make(chan string, 100)
	s.o.Alarm = func(reason string) { alarms <- reason }
	p, q := s.Publisher(t), s.Consumer(t)
	// Until it arrives: what is confirmed may be lost.
	exchange := func(data string) (got bus.Message) {
		require.Eventually(t, func() bool {
			_ = publish(p, []byte(data))
			arrived, _ := q.Poll(16)
			for _, m := range arrived {
				got = m
				require.NoError(t, q.Ack(m))
			}
			return string(got.Data) == data
		}, patience, 5*time.Millisecond)
		return got
	}
	was := exchange("a").Incarnation
	s.stop()
	older := t.TempDir()
	require.NoError(t, os.CopyFS(older, os.DirFS(s.dir)))
	s.start()
	exchange("b")
	exchange("c")
	s.stop()
	empty(t, s.dir)
	require.NoError(t, os.CopyFS(s.dir, os.DirFS(older)))
	s.start()
	require.True(t, exchange("d").Incarnation.After(was), "the stream was made again")
	require.NoError(t, p.Close())
	require.NoError(t, q.Close())
	close(alarms)
	rolledBack := 0
	for reason := range alarms {
		if reason == AlarmRolledBack {
			rolledBack++
		}
	}
	require.Equal(t, 1, rolledBack)
}

// A server whose files are damaged cuts its stream off at the damage when it starts,
// and goes on with numbers that it had confirmed: the publisher notices.
func TestForgotConfirmed(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	alarms := make(chan string, 100)
	s.o.Alarm = func(reason string) { alarms <- reason }
	p := s.Publisher(t)
	for range 100 {
		require.NoError(t, publish(p, make([]byte, 1<<10)))
	}
	s.stop()
	require.NoError(t, filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".blk" && d.Name() != "index.db" {
			return err
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		b[len(b)/2] ^= 1
		return os.WriteFile(path, b, 0o600)
	}))
	s.start()
	require.Eventually(t, func() bool { return publish(p, nil) == nil }, patience, time.Millisecond)
	require.Equal(t, AlarmForgot, <-alarms)
	require.NoError(t, publish(p, nil))
	require.NoError(t, p.Close())
	require.Empty(t, alarms, "one loss is reported once")
}
