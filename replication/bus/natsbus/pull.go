package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"antipode/internal/clock"
)

// The pull of JetStream, as the NATS design note ADR-13 describes it and jetstream/pull.go of the
// library does it. The library's own Fetch and Messages are not used. Both end their subscription
// some time after they return. So messages that the server still sends to a closed consumer are
// lost to the next one until the ack wait is over. And Messages does not notice a missing consumer
// before two heartbeats are missed.

// Limits of one pull.
const (
	// pullMessagesMax bounds the messages fetched ahead of Poll.
	pullMessagesMax = 64
	// pullBytesMax bounds the bytes of one pull, unless one message is larger, which is pulled alone.
	pullBytesMax = 4 << 20
	// pullOverhead is more than the server adds to a payload when it holds a
	// message against the bytes of a pull. A pull below one message stalls.
	pullOverhead = 64 << 10
	// heartbeatSlack is what a heartbeat may be late, on top of a missed one.
	heartbeatSlack = time.Second
	// looksPerSilence is how often within SilenceMax the server's silence is looked at.
	looksPerSilence = 12
)

// The server's status of a pull, in headers of a message without data.
const (
	headerStatus      = "Status"
	headerDescription = "Description"
	// headerPending is how many messages of the pull were not sent.
	headerPending = "Nats-Pending-Messages"
	// pullCompleted and pullTooLarge end a pull: it has all its messages, or the next one does not fit its bytes.
	pullCompleted = "Batch Completed"
	pullTooLarge  = "Message Size Exceeds MaxBytes"
)

// pullRequest is the body of a request for messages.
type pullRequest struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes"`
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat"`
}

// lookEvery is how often the silence of the server is looked at.
func (o Options) lookEvery() time.Duration { return o.SilenceMax / looksPerSilence }

// errLost is why a consumer must be attached again: it, its stream or the server
// behind it is gone.
var errLost = errors.New("natsbus: consumer lost")

// puller fetches from a durable consumer over one subscription.
type puller struct {
	nc   *nats.Conn
	sub  *nats.Subscription
	msgs chan *nats.Msg
	// subject is where requests go. Each pull has another answer subject, made
	// of inbox and count, so that a late word on one is not taken for the next.
	subject, inbox string
	count          uint64
	// expires ends a pull, heartbeat is how often the server reports that it is still there.
	expires, heartbeat time.Duration
	silence            *silence
	// look is when the silence is looked at.
	look *time.Ticker
	// largeMax bounds the pull of one message that does not fit pullBytesMax, in bytes.
	largeMax int
}

func newPuller(nc *nats.Conn, o Options, running *clock.Running) (*puller, error) {
	p := &puller{
		nc: nc,
		// One pull at a time is open; the rest is room for what the server says.
		msgs:     make(chan *nats.Msg, pullMessagesMax+16),
		subject:  fmt.Sprintf("$JS.API.CONSUMER.MSG.NEXT.%s.%s", StreamName(o.Source), consumerName),
		largeMax: max(pullBytesMax, o.Bounds.PayloadMax+pullOverhead),
		expires:  o.SilenceMax,
		// The server wants two within the life of a pull at least.
		heartbeat: o.SilenceMax / 3,
	}
	p.inbox = nc.NewInbox()
	var err error
	if p.sub, err = nc.ChanSubscribe(p.inbox+".*", p.msgs); err != nil {
		return nil, fmt.Errorf("natsbus: subscribe: %w", err)
	}
	p.silence = newSilence(2*p.heartbeat+heartbeatSlack, running)
	p.look = time.NewTicker(o.lookEvery())
	return p, nil
}

// silence is how long the server has said nothing, in the running time of the goroutine that
// listens: what the server said while this process stood still waits in the connection. It
// reads no clock.
type silence struct {
	// max is how long a server that is there says nothing at most.
	max     time.Duration
	running *clock.Running
	// seenAt is the running time of the first look after the server sent something; sent is
	// set when it did since the last look.
	seenAt time.Duration
	sent   bool
}

func newSilence(longest time.Duration, running *clock.Running) *silence {
	return &silence{max: longest, running: running}
}

// received records that the server sent something, or that listening begins.
func (s *silence) received() { s.sent = true }

// overdue looks at the silence and reports whether it is longer than it may be. now is
// monotonic time.
func (s *silence) overdue(now time.Duration) bool {
	ran := s.running.Advance(now)
	if s.sent {
		s.seenAt, s.sent = ran, false
	}
	return ran-s.seenAt >= s.max
}

// close ends the subscription. The server drops an open pull with it, and does so
// before it reads anything that is sent later on the same connection.
func (p *puller) close() {
	p.look.Stop()
	// It fails only on a connection that took the subscription with it.
	_ = p.sub.Unsubscribe()
}

// pull asks for up to n messages and passes each to take, until it has n, the
// server ends the pull, or ctx ends. It returns how many it passed on.
func (p *puller) pull(ctx context.Context, n int, take func(*nats.Msg) error) (took int, err error) {
	took, why, err := p.ask(ctx, n, pullBytesMax, take)
	if err == nil && took == 0 && why == pullTooLarge {
		took, _, err = p.ask(ctx, 1, p.largeMax, take)
	}
	return took, err
}

// ask is one request of pull. It ends when everything that the server sent for it has come, and returns why the
// server ended it early, if it did: a cluster sends a message only when most of its servers know of it, while the
// end of the pull goes at once, ahead of them. If the next pull followed before the messages of this one came,
// they would pile up, as many as the consumer may leave unacknowledged. The connection drops messages for which
// p.msgs has no room.
func (p *puller) ask(ctx context.Context, n, bytesMax int, take func(*nats.Msg) error) (took int, why string, err error) {
	body, err := json.Marshal(pullRequest{Batch: n, MaxBytes: bytesMax, Expires: p.expires, Heartbeat: p.heartbeat})
	if err != nil {
		return 0, "", fmt.Errorf("natsbus: pull request: %w", err)
	}
	p.count++
	reply := fmt.Sprintf("%s.%d", p.inbox, p.count)
	if err := p.nc.PublishRequest(p.subject, reply, body); err != nil {
		return 0, "", fmt.Errorf("natsbus: pull: %w", err)
	}
	p.silence.received()
	for want := n; took < want; {
		select {
		case m := <-p.msgs:
			p.silence.received()
			if m.Header.Get(headerStatus) == "" {
				if err := take(m); err != nil {
					return took, "", err
				}
				took++
				continue
			}
			if m.Subject != reply {
				continue
			}
			over, err := status(m)
			if err != nil {
				return took, "", err
			}
			if over {
				want, why = sent(m, n), m.Header.Get(headerDescription)
			}
		case <-p.look.C:
			// What came meanwhile is taken first: of two that are ready select takes any.
			if p.silence.overdue(clock.System{}.Mono()) && len(p.msgs) == 0 {
				return took, "", fmt.Errorf("%w: no heartbeat for %v", errLost, p.silence.max)
			}
		case <-ctx.Done():
			return took, "", context.Cause(ctx)
		}
	}
	return took, why, nil
}

// status reads what the server says instead of a message: over ends the pull, an
// error the attachment. Stored messages carry no Status header, as no publisher
// of ours sets one.
func status(m *nats.Msg) (over bool, err error) {
	code := m.Header.Get(headerStatus)
	what := m.Header.Get(headerDescription)
	switch code {
	case "100": // a heartbeat
		return false, nil
	case "404", "408": // nothing there; the pull expired
		return true, nil
	case "409":
		// The bytes of the pull are used up. Every other 409 is about the consumer.
		if what == pullCompleted || what == pullTooLarge {
			return true, nil
		}
	}
	return true, fmt.Errorf("%w: %s %s", errLost, code, what)
}

// sent is how many of the n messages of a pull the server has sent or is about to send when it ends the pull with m.
func sent(m *nats.Msg, n int) int {
	pending, err := strconv.Atoi(m.Header.Get(headerPending))
	if err != nil {
		return 0 // Nothing was pending, and nothing was sent.
	}
	return n - pending
}
