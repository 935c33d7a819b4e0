package natsbus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"antipode/internal/clock"
	"antipode/replication/bus"
)

// run attaches again and again until ctx ends.
func (q *Consumer) run(ctx context.Context) {
	pause := retryFirst
	for {
		attached, err := q.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		q.remakeAfter(ctx, err)
		q.setFault(fmt.Errorf("%w: %w", bus.ErrUnavailable, err))
		if attached {
			pause = retryFirst
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, retryLast)
	}
}

// serve waits for the connection, attaches, and fetches until the connection, the
// consumer or ctx ends. It reports whether it came as far as being attached.
func (q *Consumer) serve(ctx context.Context) (attached bool, err error) {
	ctx, cancel, err := q.c.whileUp(ctx)
	if err != nil {
		return false, err
	}
	defer cancel()
	p, err := q.attach(ctx)
	if err != nil {
		return false, err
	}
	defer p.close()
	servers := time.NewTicker(serversEvery)
	defer servers.Stop()
	silent := 0 // pulls in a row that brought nothing
	for {
		n, err := q.awaitRoom(ctx)
		if err != nil {
			return true, err
		}
		took, err := p.pull(ctx, n, q.take)
		if took > 0 {
			q.mute, silent = 0, 0
		} else if err == nil {
			if silent++; silent%2 == 1 {
				err = q.probe(ctx)
			}
		}
		if err != nil {
			return true, err
		}
		select {
		case <-servers.C:
			if q.o.Replicas > 1 {
				q.checkServers(ctx)
			}
		default:
		}
	}
}

// attach makes what is missing, rewinds the durable consumer to its ack floor and
// forgets what the former attachment delivered and nobody polled: it comes again.
func (q *Consumer) attach(ctx context.Context) (*puller, error) {
	actx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	info, err := ensure(actx, q.c, q.o)
	if err != nil {
		return nil, err
	}
	made := info.Created.UTC()
	if err := q.checkEnd(clock.System{}.Mono(), made, info.State.LastSeq); err != nil {
		return nil, err
	}
	name := StreamName(q.o.Source)
	if _, err := q.c.js.ResetConsumer(actx, name, consumerName); err != nil {
		return nil, fmt.Errorf("natsbus: reset consumer of %s: %w", q.o.Source, err)
	}
	p, err := newPuller(q.c.nc, q.o, q.running)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !made.Equal(q.incarnation) {
		if !q.incarnation.IsZero() {
			q.o.Log.Warn("stream was made again", "source", q.o.Source, "was", q.incarnation, "is", made)
		}
		q.incarnation, q.acked, q.seen, q.probes = made, 0, position{}, nil
	} else {
		q.ready = slices.DeleteFunc(q.ready, func(m bus.Message) bool { return m.Incarnation.Equal(made) })
		q.readyBytes = 0
		for _, m := range q.ready {
			q.readyBytes += len(m.Data)
		}
	}
	q.open, q.delivered, q.lastAck, q.fault = nil, 0, "", nil
	q.fresh = q.acked
	q.attachments.Add(1)
	token(q.wake)
	return p, nil
}

// awaitRoom blocks while half of what may be fetched ahead, or all its bytes, is
// waiting for Poll, and returns how many messages to fetch. A receiver that is
// slow leaves the backlog to the server.
func (q *Consumer) awaitRoom(ctx context.Context) (int, error) {
	for {
		q.mu.Lock()
		n, bytes := len(q.ready), q.readyBytes
		q.mu.Unlock()
		if n <= pullMessagesMax/2 && bytes < pullBytesMax {
			return pullMessagesMax - n, nil
		}
		select {
		case <-q.room:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// setFault makes Poll and Wait report that nothing can be fetched.
func (q *Consumer) setFault(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fault == nil {
		q.o.Log.Warn("stream consumer detached", "source", q.o.Source, "err", err)
		token(q.wake)
	}
	q.fault = err
}
