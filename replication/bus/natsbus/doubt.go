package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"antipode/replication/bus"
)

// Alarm reasons of a stream that is wrong. A stream that was deleted and made again shows
// in the incarnation of its messages.
const (
	// AlarmRolledBack: the consumer was brought back to numbers it had been given, or
	// got them for other messages: the store was put back to an older copy. The stream
	// is made again, so that no number means two messages.
	AlarmRolledBack = "rolled_back"
	// AlarmDamaged: the consumer missed numbers, or the stream holds messages that it
	// cannot deliver: its files are damaged.
	AlarmDamaged = "damaged"
	// AlarmForgot: the publisher was given numbers that it had been given before: the
	// stream lost messages that it had confirmed. Its end was cut off, or it was put
	// back to an older copy, or made again.
	AlarmForgot = "forgot_confirmed"
	// AlarmServers: fewer servers hold the stream than should. It goes on without one of
	// three.
	AlarmServers = "servers"
)

// serversEvery is how often a stream in several servers is asked for them.
const serversEvery = 2 * time.Second

// position is how far a stream has been seen, in one incarnation.
type position struct {
	// seq is the highest number delivered.
	seq uint64
	// stored is the latest time at which a delivered message was stored.
	stored time.Time
}

// errRolledBack: see AlarmRolledBack.
var errRolledBack = errors.New("natsbus: stream was put back to an older copy")

// checkDelivered compares a delivered message with what was seen before. A message delivered again
// was stored by then; one stored later has no business below. First deliveries of an attachment
// come without holes, from behind what was acknowledged, since nobody else acknowledges. The caller
// holds mu.
func (q *Consumer) checkDelivered(m bus.Message, stored time.Time) error {
	if m.Seq <= q.seen.seq && stored.After(q.seen.stored) {
		return fmt.Errorf("%w: number %d was given to a message before", errRolledBack, m.Seq)
	}
	q.seen.seq = max(q.seen.seq, m.Seq)
	if stored.After(q.seen.stored) {
		q.seen.stored = stored
	}
	if m.Redelivered {
		return nil
	}
	if q.fresh > 0 && m.Seq > q.fresh+1+q.probesBetween(q.fresh, m.Seq) {
		q.o.Alarm(AlarmDamaged)
		q.o.Log.Error("stream lost messages that it had stored; what was not applied is pulled",
			"source", q.o.Source, "behind", q.fresh, "before", m.Seq)
	}
	q.fresh = m.Seq
	return nil
}

// probesMax bounds the probes that are remembered: two days of them.
const probesMax = 1 << 14

// remember records the number of a probe, which nobody will be delivered.
func (q *Consumer) remember(probe uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.probes = slices.DeleteFunc(q.probes, func(n uint64) bool { return n < q.acked })
	if len(q.probes) == probesMax {
		q.probes = slices.Delete(q.probes, 0, 1)
	}
	q.probes = append(q.probes, probe)
}

// probesBetween counts the probes above from and below to. The caller holds mu.
func (q *Consumer) probesBetween(from, to uint64) (n uint64) {
	for _, p := range q.probes {
		if from < p && p < to {
			n++
		}
	}
	return n
}

// endGrace is how long servers that just elected a leader may report the end of the stream
// before what was delivered: the new one may not have got as far as the one before.
const endGrace = 5 * time.Second

// checkEnd compares the end of the stream with what was seen of it. Once is no proof,
// nor is a leader's word while it may still be catching up: while this process stood still,
// a server in it or beside it did not catch up either. now is monotonic time.
func (q *Consumer) checkEnd(now time.Duration, made time.Time, last uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	ran := q.attempts.Advance(now)
	if !made.Equal(q.incarnation) || last >= q.seen.seq {
		q.short = 0
		return nil
	}
	why := errRolledBack
	if q.short == 0 {
		q.short, why = ran, errLost
	} else if q.o.Replicas > 1 && ran-q.short < endGrace {
		why = errLost
	} else {
		q.short = 0
	}
	return fmt.Errorf("%w: it ends at %d, and %d was delivered", why, last, q.seen.seq)
}

// remakeAfter deletes the stream where err is that of one that was rolled back: the
// next attachment makes it again.
func (q *Consumer) remakeAfter(ctx context.Context, err error) {
	if !errors.Is(err, errRolledBack) {
		return
	}
	q.o.Alarm(AlarmRolledBack)
	q.o.Log.Error("stream is made again; what it lost is pulled", "source", q.o.Source, "err", err)
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	if err := q.c.js.DeleteStream(ctx, StreamName(q.o.Source)); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		q.o.Log.Warn("cannot delete the stream; trying again", "source", q.o.Source, "err", err)
	}
}

// checkServers raises AlarmServers when another server is away than before. A stream that does not
// answer is left to the pull.
func (q *Consumer) checkServers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := q.c.js.Stream(ctx, StreamName(q.o.Source))
	if err != nil || s.CachedInfo().Cluster == nil {
		return
	}
	var away []string
	for _, p := range s.CachedInfo().Cluster.Replicas {
		if p.Offline {
			away = append(away, p.Name)
		}
	}
	if slices.ContainsFunc(away, func(name string) bool { return !slices.Contains(q.serversAway, name) }) {
		q.o.Alarm(AlarmServers)
		q.o.Log.Error("servers that hold the stream are away; start them", "source", q.o.Source, "servers", away)
	}
	q.serversAway = away
}
