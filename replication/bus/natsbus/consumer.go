package natsbus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"antipode/internal/clock"
	"antipode/replication/bus"
)

// Times of the consumer.
const (
	// attachTimeout bounds making and resetting stream and consumer.
	attachTimeout = 10 * time.Second
	// retryFirst and retryLast are the shortest and the longest pause between attempts to attach.
	retryFirst = 50 * time.Millisecond
	retryLast  = 2 * time.Second
	// lastAckTimeout bounds the wait for the server's word on the last ack at Close.
	lastAckTimeout = 2 * time.Second
)

// ackBody is the server's word for an acknowledgement.
var ackBody = []byte("+ACK") //nolint:gochecknoglobals // a constant that is a slice

// Consumer is the bus.Consumer on JetStream. Its goroutine attaches to the
// durable consumer, making what is missing, and fetches ahead of Poll: at most 64
// messages, at most 4 MiB (or one larger message) in a fetch, and no fetch while
// 4 MiB wait to be polled.
//
// Attaching resets the durable consumer to its ack floor. So messages that a former user of it left
// are delivered at once and in order, and not after the ack wait. The price is that a message
// delivered for the second time in this way is not marked Redelivered.
type Consumer struct {
	c        *Conn
	o        Options
	cancel   context.CancelFunc
	finished chan struct{} // closed when the goroutines have ended
	close    sync.Once
	// wake holds a token when Poll may have something new to say, room one when
	// Poll took messages. Both have room for one.
	wake, room chan struct{}
	// serversAway are those that AlarmServers was raised for. Only run uses it.
	serversAway []string
	// attachments counts those since watchRoom last looked: each may have given the stream the bound of a moment before.
	attachments atomic.Int64

	mu sync.Mutex
	// incarnation is that of the attachment. Guarded by mu, like all below.
	incarnation time.Time
	// ready are messages fetched and not polled, readyBytes the bytes in them.
	// They may be of an older incarnation: it is gone, they are not.
	ready      []bus.Message
	readyBytes int
	// open are the messages of incarnation that the attachment delivered and
	// nobody acknowledged, by number.
	open []delivery
	// acked is the highest number acknowledged in incarnation. The ack may not have reached
	// the bus: what comes again at or below is acknowledged again here.
	acked uint64
	// delivered is the durable consumer's own count of deliveries, which starts again with
	// every attachment and has no holes, as nobody else pulls.
	delivered uint64
	// lastAck is where the last ack of this attachment went.
	lastAck string
	// seen is how far incarnation was seen. short is since when its end is found below,
	// in the running time of the attempts to attach, zero for not.
	seen     position
	attempts *clock.Running
	short    time.Duration
	// fresh is the number that this attachment delivered last for the first time, or
	// before that acked; zero while neither is known. probes are the numbers not below
	// acked that went to our own messages.
	fresh  uint64
	probes []uint64
	// running is the running time in which the server and the stream are checked; mute is
	// since when the stream stores no probe, in it, zero for not. Both are of the fetching
	// goroutine, and of what it waits for.
	running *clock.Running
	mute    time.Duration
	// fault is why nothing can be fetched now, nil while attached.
	fault  error
	closed bool
}

// delivery is one message that waits for its ack.
type delivery struct {
	seq uint64
	// reply is where the ack of the first delivery goes. The server wants the
	// acks of an AckAll consumer in the order of its deliveries, which for the
	// first deliveries is the order of the messages.
	reply  string
	polled bool
}

var _ bus.Consumer = (*Consumer)(nil)

// OpenConsumer opens the consumer of the stream of o.Source. Stream and durable
// consumer are made if they are missing, now or later: an error is a wrong option,
// while a server that cannot be reached shows as bus.ErrUnavailable from Poll.
// One Consumer of a stream may be open at a time, in all processes.
func OpenConsumer(c *Conn, o Options) (*Consumer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	q := &Consumer{
		c: c, o: o.withDefaults(), cancel: cancel, running: clock.NewRunning(o.withDefaults().lookEvery()), attempts: clock.NewRunning(retryLast),
		finished: make(chan struct{}),
		wake:     make(chan struct{}, 1),
		room:     make(chan struct{}, 1),
		fault:    fmt.Errorf("%w: not attached yet", bus.ErrUnavailable),
	}
	go func() {
		defer close(q.finished)
		var room sync.WaitGroup
		room.Go(func() { q.watchRoom(ctx) })
		q.run(ctx)
		room.Wait()
	}()
	return q, nil
}

// Incarnation returns when the stream this consumer is attached to was made; zero
// before the first attachment. A receiver that remembers it learns that the stream
// was lost while it was away.
func (q *Consumer) Incarnation() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.incarnation
}

// Poll returns messages fetched ahead. With none at hand while the server is away
// it returns bus.ErrUnavailable.
func (q *Consumer) Poll(limit int) ([]bus.Message, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, bus.ErrClosed
	}
	n := min(max(limit, 0), len(q.ready))
	if n == 0 {
		if len(q.ready) == 0 {
			return nil, q.fault
		}
		return nil, nil
	}
	out := slices.Clone(q.ready[:n])
	q.ready = slices.Delete(q.ready, 0, n)
	for _, m := range out {
		q.readyBytes -= len(m.Data)
		if i, ok := q.find(m); ok {
			q.open[i].polled = true
		}
	}
	token(q.room)
	return out, nil
}

// Wait blocks until something changed: a message came, the server was lost or
// found, the consumer was closed. While the server is away it reports so once for
// each change and blocks otherwise.
func (q *Consumer) Wait(ctx context.Context) error {
	for changed := false; ; {
		q.mu.Lock()
		n, fault, closed := len(q.ready), q.fault, q.closed
		q.mu.Unlock()
		switch {
		case closed:
			return bus.ErrClosed
		case n > 0:
			return nil
		case changed:
			return fault
		}
		select {
		case <-q.wake:
			changed = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Ack acknowledges m and all before it. An ack that is lost is made up for when
// the message comes again, so there is nothing to repeat.
//
// Each message is acknowledged by itself, in order. If one ack covers several, a server deletes the last one first,
// and the others in any order. A block of its store that lost half of its messages in this way is read and written
// again, which takes two buffers of 8 MiB.
func (q *Consumer) Ack(m bus.Message) error {
	acked, err := q.acknowledge(m)
	for _, d := range acked {
		q.sendAck(d.reply)
	}
	return err
}

// acknowledge records the ack of m and returns what to acknowledge for it.
func (q *Consumer) acknowledge(m bus.Message) (acked []delivery, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, bus.ErrClosed
	case !m.Incarnation.Equal(q.incarnation) || m.Seq <= q.acked:
		return nil, nil
	}
	q.acked = m.Seq
	i, found := q.find(m)
	if found {
		i++
	}
	if i == 0 {
		return nil, nil // a former attachment's: it comes again, and is acked then
	}
	acked = slices.Clone(q.open[:i])
	q.lastAck = acked[i-1].reply
	q.open = slices.Delete(q.open, 0, i)
	return acked, nil
}

// sendAck writes an ack to the connection. One that is down drops it, which costs
// a redelivery.
func (q *Consumer) sendAck(reply string) {
	_ = q.c.nc.Publish(reply, ackBody)
}

// Close ends the fetching and waits until the server has taken the last ack, for
// at most 2 s. What is not acknowledged goes to the next consumer.
func (q *Consumer) Close() error {
	q.close.Do(func() {
		q.mu.Lock()
		q.closed = true
		q.ready = nil
		last := q.lastAck
		q.mu.Unlock()
		q.cancel()
		<-q.finished
		token(q.wake)
		if last != "" && q.c.Connected() {
			ctx, cancel := context.WithTimeout(context.Background(), lastAckTimeout)
			defer cancel()
			// A lost ack costs a redelivery and nothing else.
			_, _ = q.c.nc.RequestWithContext(ctx, last, ackBody)
		}
	})
	return nil
}

// take keeps one delivered message for Poll, or acknowledges it once more.
func (q *Consumer) take(m *nats.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("natsbus: delivered message: %w", err)
	}
	again, err := q.keep(m, meta)
	if again {
		q.sendAck(m.Reply)
	}
	return err
}

// keep puts m in ready, or reports that it was acknowledged before.
func (q *Consumer) keep(m *nats.Msg, meta *nats.MsgMetadata) (acked bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delivered++
	if meta.Sequence.Consumer != q.delivered {
		// Another stream of the same name, another user of the consumer, or a
		// message lost on the way: none may pass for the one we attached to.
		return false, fmt.Errorf("%w: delivery %d came as number %d", errLost, q.delivered, meta.Sequence.Consumer)
	}
	msg := bus.Message{
		Subject:     m.Subject,
		Data:        m.Data,
		Seq:         meta.Sequence.Stream,
		Redelivered: meta.NumDelivered > 1,
		Incarnation: q.incarnation,
	}
	if err := q.checkDelivered(msg, meta.Timestamp); err != nil {
		return false, err
	}
	if msg.Seq <= q.acked || q.probed(msg) {
		q.acked = max(q.acked, msg.Seq)
		q.lastAck = m.Reply
		return true, nil
	}
	if msg.Subject == q.o.probeSubject() {
		return false, nil // acknowledged with a later message, or when it comes again
	}
	i, known := q.find(msg)
	if known && !q.open[i].polled {
		return false, nil // it waits in ready
	}
	if !known {
		q.open = slices.Insert(q.open, i, delivery{seq: msg.Seq, reply: m.Reply})
	}
	q.ready = append(q.ready, msg)
	q.readyBytes += len(msg.Data)
	token(q.wake)
	return false, nil
}

// probed reports whether m is a probe, left behind by a process that ended before
// it had deleted it, that can be acknowledged: nothing before it waits for an ack,
// which its own would cover. The caller holds mu.
func (q *Consumer) probed(m bus.Message) bool {
	return m.Subject == q.o.probeSubject() && len(q.open) == 0
}

// find returns where m is, or would be, among the open deliveries. A message of
// another incarnation is not there. The caller holds mu.
func (q *Consumer) find(m bus.Message) (int, bool) {
	if !m.Incarnation.Equal(q.incarnation) {
		return 0, false
	}
	return slices.BinarySearchFunc(q.open, m.Seq, func(d delivery, seq uint64) int {
		switch {
		case d.seq < seq:
			return -1
		case d.seq > seq:
			return 1
		}
		return 0
	})
}

// token leaves one token in c.
func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
