// Package bus is the interface of the transport between the two ends of the geo stream. The bus
// lives in the receiving location and is a cache that may be wrong (R15): it may lose, double,
// reorder, refuse, or be deleted and made again. Correctness rests on the record numbers inside
// the frames, never on the bus; the bus only has to be fast.
//
// Two implementations, membus and natsbus, pass the suite in bustest.
package bus

import (
	"context"
	"errors"
	"time"
)

// Errors of a bus. ErrFull and ErrUnavailable are temporary: the caller tries again later.
var (
	// ErrFull: the bus holds as much as it may and refuses new messages
	// (discard-new), or the publisher's window is used up.
	ErrFull = errors.New("stream: full")
	// ErrUnavailable: the bus cannot be reached or does not answer in time.
	// A publish that ended so may or may not have been stored.
	ErrUnavailable = errors.New("stream: unavailable")
	// ErrTooLarge: the payload is over MaxPayload. It will never fit.
	ErrTooLarge = errors.New("stream: payload over the bus's maximum")
	// ErrClosed: the publisher or consumer was closed.
	ErrClosed = errors.New("stream: closed")
)

// Publisher sends messages to the stream. Methods may be called concurrently;
// the order of Publish calls is the order in which messages are stored unless
// one of them fails.
type Publisher interface {
	// Publish submits data to the bus and returns without waiting for it.
	// done is called exactly once, from any goroutine, with nil once the bus confirms that
	// the message is stored, or with one of the errors above. It may Publish again; it must
	// not block for long nor call Close. When Publish itself returns an error (ErrFull for
	// the window, ErrTooLarge, ErrClosed), done is not called. The bus owns data until done
	// is called.
	Publish(subject string, data []byte, done func(error)) error
	// MaxPayload is the largest data Publish takes, in bytes.
	MaxPayload() int
	// Close releases what the publisher holds; open publishes end with ErrClosed.
	Close() error
}

// Message is one stored frame as the consumer gets it.
type Message struct {
	// Subject is what the publisher gave.
	Subject string
	// Data is the payload. The consumer owns it.
	Data []byte
	// Seq is the bus's own sequence number within Incarnation: for
	// acknowledging and for alarms, never for order of records.
	Seq uint64
	// Redelivered means that the bus delivered this message before. False is no proof that it did
	// not: a bus may forget.
	Redelivered bool
	// Incarnation is when the stream was created. A new value means that the stream was deleted
	// and created again (R15, alarm incarnation).
	Incarnation time.Time
}

// Consumer takes messages from the stream, all subjects of it. One goroutine uses
// a Consumer at a time.
type Consumer interface {
	// Poll returns up to limit messages that have arrived, without waiting. An empty result is
	// not an error. While the bus is away and no message has arrived it returns ErrUnavailable.
	Poll(limit int) ([]Message, error)
	// Wait blocks until Poll may return something, ctx ends, or the bus fails; it may return
	// early. If the bus stays away, the first call returns ErrUnavailable and the next one blocks
	// until the bus is back, so that a caller may loop.
	Wait(ctx context.Context) error
	// Ack acknowledges the message and all before it (AckAll). What is not acknowledged within
	// the bus's ack wait is delivered again. A message of a former incarnation is gone from the
	// bus: its Ack does nothing. An ack may be lost; the caller repeats it when the message is
	// delivered again.
	Ack(m Message) error
	// Close releases what the consumer holds. Unacknowledged messages are
	// delivered again to the next consumer.
	Close() error
}

// Bounds of a bus. Both implementations refuse by the same bounds.
type Bounds struct {
	// BytesMax bounds what the bus stores. Zero means 1 GiB.
	BytesMax int64
	// WindowMax bounds publishes in flight per Publisher (R15). Zero means 64.
	WindowMax int
	// AckPendingMax bounds delivered and unacknowledged messages. Zero means 1024.
	AckPendingMax int
	// AckWait is how long a delivered message may stay unacknowledged before it
	// is delivered again. Zero means 30 s.
	AckWait time.Duration
	// PayloadMax bounds one message in bytes. Zero means 8 MiB.
	PayloadMax int
}

// WithDefaults returns b with the zero fields filled in.
func (b Bounds) WithDefaults() Bounds {
	if b.BytesMax == 0 {
		b.BytesMax = 1 << 30
	}
	if b.WindowMax == 0 {
		b.WindowMax = 64
	}
	if b.AckPendingMax == 0 {
		b.AckPendingMax = 1024
	}
	if b.AckWait == 0 {
		b.AckWait = 30 * time.Second
	}
	if b.PayloadMax == 0 {
		b.PayloadMax = 8 << 20
	}
	return b
}
