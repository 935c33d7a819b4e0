package natsbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"antipode/internal/clock"
	"antipode/replication/bus"
)

// probe checks that a stream which brought nothing still stores, by storing a message, which no receiver sees. A
// server whose files were deleted, or whose disk was full once, goes on looking healthy while it stores nothing more.
// This lasts until it is restarted or the stream is made again. So probe makes the stream again, with several servers
// only after electionMax. Only while the receiver has as many messages unacknowledged as it may is the stream left
// alone: what it stored before it broke may still come.
func (q *Consumer) probe(ctx context.Context) error {
	err := q.probeOnce(ctx)
	switch {
	case err == nil, errors.Is(publishError(err), bus.ErrFull):
		q.mute = 0
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w: %w", errLost, err)
	}
	name := StreamName(q.o.Source)
	hctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	if c, cerr := q.c.js.Consumer(hctx, name, consumerName); cerr == nil && c.CachedInfo().NumAckPending >= q.o.Bounds.AckPendingMax {
		return nil
	}
	if now := q.running.Time(); q.o.Replicas > 1 {
		if q.mute == 0 {
			q.mute = now
		}
		if now-q.mute < electionMax {
			return fmt.Errorf("%w: %w", errLost, err)
		}
	}
	q.mute = 0
	q.o.Log.Warn("stream stores nothing more and is made again", "source", q.o.Source, "err", err)
	if derr := q.c.js.DeleteStream(hctx, name); derr != nil {
		err = errors.Join(err, derr)
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

// electionMax is how long a stream in several servers may store nothing before it is
// made again: JetStream's elections take up to 9 s, and what is stored outlives them.
const electionMax = 15 * time.Second

// probeOnce stores one message, and deletes it where nothing before it waits for its acknowledgement. Between two
// messages it would leave a hole, and the process that receives them after this one could not know that nothing is
// missing there. So it stays, and is acknowledged with what comes before it.
func (q *Consumer) probeOnce(ctx context.Context) error {
	pctx, cancel := q.whileRunning(ctx, q.o.AckTimeout)
	defer cancel()
	ack, err := q.c.js.Publish(pctx, q.o.probeSubject(), nil, jetstream.WithRetryAttempts(0))
	if err != nil {
		return err
	}
	q.remember(ack.Sequence)
	s, err := q.c.js.Stream(pctx, StreamName(q.o.Source))
	if err != nil {
		return err
	}
	if s.CachedInfo().State.FirstSeq < ack.Sequence {
		return nil
	}
	// The message may be gone with the stream, or a probe of another process.
	err = s.DeleteMsg(pctx, ack.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return nil
	}
	return err
}

// whileRunning returns a context that ends once this process has run for d, or with ctx. A
// stream is not made again because this process stood still while it answered. The caller
// must cancel the context.
func (q *Consumer) whileRunning(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	// The library gives a context without a deadline a default one.
	ctx, cancel := context.WithTimeout(ctx, standStillMax)
	ended := make(chan struct{})
	look := time.NewTicker(q.o.lookEvery())
	began := q.running.Advance(clock.System{}.Mono())
	go func() {
		defer close(ended)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if q.running.Advance(clock.System{}.Mono())-began >= d {
				cancel()
			}
		}
	}()
	return ctx, func() { cancel(); <-ended }
}

// standStillMax is beyond every time that a process stands still.
const standStillMax = 365 * 24 * time.Hour
