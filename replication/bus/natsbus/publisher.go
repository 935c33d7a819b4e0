package natsbus

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"antipode/replication/bus"
)

// Publisher is a bus.Publisher on JetStream. Its done functions are called from
// one goroutine, one after the other: they may Publish, and must not
// block for long nor call Close.
type Publisher struct {
	o  Options
	c  *Conn
	js jetstream.JetStream
	// sends takes messages to the goroutine that writes them: a write may block,
	// for Conn's WriteWait at most, and Publish may not. ends takes answers to the
	// goroutine that calls done. Both have room for the whole window, so a send on
	// them never blocks.
	sends chan *nats.Msg
	ends  chan end
	sent  sync.WaitGroup // the writing goroutine
	ended sync.WaitGroup // the answering goroutine
	close sync.Once

	mu sync.Mutex
	// open holds every message without an answer. The code that takes a message out of it
	// owes the answer, which makes it exactly one.
	open map[*nats.Msg]pending
	// stored is the number that was confirmed last. It falls when the stream forgot
	// what it had confirmed; forgot counts how often it did.
	stored uint64
	forgot int
	// inFlight counts open messages and answers not yet given.
	inFlight int
	closed   bool
}

// pending is a message without an answer.
type pending struct {
	done func(error)
	// after is the number that was confirmed last when it was sent, forgot how
	// often the stream had lost any by then. Its own number is higher.
	after  uint64
	forgot int
}

// end is the answer to one publish.
type end struct {
	done func(error)
	err  error
}

var _ bus.Publisher = (*Publisher)(nil)

// OpenPublisher returns a publisher to the stream of o.Source. The stream need not
// be there yet. When the connection is up, a server that takes less than
// o.Bounds.PayloadMax is an error.
func OpenPublisher(c *Conn, o Options) (*Publisher, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if got, known := c.payloadMax(); known && got < int64(o.Bounds.PayloadMax) {
		return nil, fmt.Errorf("natsbus: the server takes payloads of %d bytes, %d are needed", got, o.Bounds.PayloadMax)
	}
	p := &Publisher{
		o: o, c: c,
		sends: make(chan *nats.Msg, o.Bounds.WindowMax),
		ends:  make(chan end, o.Bounds.WindowMax),
		open:  make(map[*nats.Msg]pending, o.Bounds.WindowMax),
	}
	var err error
	p.js, err = jetstream.New(c.nc,
		jetstream.WithPublishAsyncMaxPending(o.Bounds.WindowMax),
		jetstream.WithPublishAsyncTimeout(o.AckTimeout),
		jetstream.WithPublishAsyncAckHandler(func(_ jetstream.JetStream, m *nats.Msg, a *jetstream.PubAck) {
			p.confirmed(m, a.Sequence)
			p.finish(m, nil)
		}),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) { p.finish(m, publishError(err)) }),
	)
	if err != nil {
		return nil, fmt.Errorf("natsbus: publisher: %w", err)
	}
	p.sent.Go(p.send)
	p.ended.Go(p.answer)
	return p, nil
}

// Publish submits the message to the writing goroutine. A subject outside the
// stream's is an error of the program and is returned.
func (p *Publisher) Publish(subject string, data []byte, done func(error)) error {
	if !strings.HasPrefix(subject, p.o.subjectPrefix()) {
		return fmt.Errorf("natsbus: subject %q does not begin with %q", subject, p.o.subjectPrefix())
	}
	if len(data) > p.o.Bounds.PayloadMax {
		return fmt.Errorf("%w: %d bytes, at most %d", bus.ErrTooLarge, len(data), p.o.Bounds.PayloadMax)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return bus.ErrClosed
	case p.inFlight >= p.o.Bounds.WindowMax:
		return fmt.Errorf("%w: %d publishes in flight", bus.ErrFull, p.inFlight)
	}
	m := &nats.Msg{Subject: subject, Data: data}
	p.inFlight++
	p.open[m] = pending{done, p.stored, p.forgot}
	p.sends <- m
	return nil
}

// MaxPayload is Bounds.PayloadMax, which the server was found to take.
func (p *Publisher) MaxPayload() int { return p.o.Bounds.PayloadMax }

// Close ends open publishes with bus.ErrClosed, though the server may still
// store what was written, and returns when the last done has returned. The library's
// subscription for answers ends with the connection: its CleanupPublisher right after
// a first publish would leave a goroutine behind, which waits on a channel that
// CleanupPublisher took away before it looked.
func (p *Publisher) Close() error {
	p.close.Do(func() {
		p.mu.Lock()
		p.closed = true
		for m, open := range p.open {
			delete(p.open, m)
			p.ends <- end{open.done, bus.ErrClosed}
		}
		close(p.sends)
		p.mu.Unlock()
		p.sent.Wait()
		// From here on finish finds nothing open, so nothing sends on ends.
		close(p.ends)
		p.ended.Wait()
	})
	return nil
}

// send writes messages in the order of Publish until Close.
func (p *Publisher) send() {
	for m := range p.sends {
		p.mu.Lock()
		_, open := p.open[m]
		p.mu.Unlock()
		if !open {
			continue
		}
		// The library would repeat a publish that found no stream, after others
		// had passed it: no retries, the caller sees to them.
		if _, err := p.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0)); err != nil {
			p.finish(m, publishError(err))
		}
	}
}

// confirmed compares the number that m got with those given before (AlarmForgot).
// What was in flight at the time shows nothing: confirmations may overtake each other.
func (p *Publisher) confirmed(m *nats.Msg, seq uint64) {
	p.mu.Lock()
	open, isOpen := p.open[m]
	was := p.stored
	forgot := isOpen && open.forgot == p.forgot && seq <= open.after
	if forgot {
		p.forgot++
		p.stored = seq
	} else if isOpen && open.forgot == p.forgot {
		p.stored = max(p.stored, seq)
	}
	p.mu.Unlock()
	if forgot {
		p.o.Alarm(AlarmForgot)
		p.o.Log.Error("the other location's stream lost messages that it had confirmed; what was not applied is pulled",
			"source", p.o.Source, "confirmed", was, "now", seq)
	}
}

// finish answers m with err, unless it was answered. The library calls it with a
// lock held on a timeout, so done must not be called here.
func (p *Publisher) finish(m *nats.Msg, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open, isOpen := p.open[m]
	if !isOpen {
		return
	}
	delete(p.open, m)
	p.ends <- end{open.done, err}
}

// answer calls the done functions until Close has given the last.
func (p *Publisher) answer() {
	for e := range p.ends {
		p.mu.Lock()
		p.inFlight--
		p.mu.Unlock()
		e.done(e.err)
	}
}

// Codes of the server's refusals. The library names only some of the server's
// codes; these are from jetstream_errors_generated.go of the server.
const (
	codeAccountResources jetstream.ErrorCode = 10002 // resource limits exceeded for account
	codeInsufficient     jetstream.ErrorCode = 10023 // insufficient resources
	codeMemoryExceeded   jetstream.ErrorCode = 10028 // insufficient memory resources available
	codeStorageExceeded  jetstream.ErrorCode = 10047 // insufficient storage resources available
	codeMessageTooLarge  jetstream.ErrorCode = 10054 // message size exceeds maximum allowed
	codeStoreFailed      jetstream.ErrorCode = 10077 // the description says why
	codeTooManyRequests  jetstream.ErrorCode = 10167 // too many requests
)

// publishError turns what the library or the server said into one of the errors of
// package stream, keeping the words.
func publishError(err error) error {
	kind := bus.ErrUnavailable
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		kind = bus.ErrTooLarge
	case errors.As(err, &api):
		switch api.ErrorCode {
		case codeAccountResources, codeInsufficient, codeMemoryExceeded, codeStorageExceeded, codeTooManyRequests:
			kind = bus.ErrFull
		case codeMessageTooLarge:
			kind = bus.ErrTooLarge
		case codeStoreFailed:
			// A full store and a broken one share the code.
			switch {
			case strings.HasPrefix(api.Description, "maximum "):
				kind = bus.ErrFull
			case strings.Contains(api.Description, "too large"):
				kind = bus.ErrTooLarge
			}
		}
	}
	return fmt.Errorf("%w: %w", kind, err)
}
