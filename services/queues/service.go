package queues

import (
	"context"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// Queue is one life of a queue: its name, and the generation that the catalog has of it.
type Queue struct {
	Account    geo.Account
	Name       string
	Generation keys.Generation
}

// PutOptions are what a client says of a message that it puts.
type PutOptions struct {
	Text []byte
	// TTL is how long the message lives; below zero, for ever.
	TTL time.Duration
	// Delay is how long it is not visible at first. It is below TTL.
	Delay time.Duration
}

// Stamp is the stamp of this location.
type Stamp interface {
	ranges.Reader
	ranges.Routed
}

// Options configures a Service.
type Options struct {
	Stamp  Stamp
	Writer services.Writer
	Clock  clock.Clock
}

// Service is the queues of a location. It spreads the messages of a queue over its subqueues. Its calls change
// nothing where they fail, unless the error is kv.ErrUnknown: then they may have. Methods may be called concurrently.
type Service struct {
	o Options
}

// New returns the queues of a location.
func New(o Options) *Service { return &Service{o: o} }

// Put puts a message. The result has no text.
func (s *Service) Put(ctx context.Context, q Queue, o PutOptions) (Message, error) {
	return Message{}, storageerr.NotImplemented
}

// Get takes up to limit visible messages and hides them for a time. It is not to be repeated after kv.ErrUnknown: it
// may have hidden them.
func (s *Service) Get(ctx context.Context, q Queue, limit int, timeout time.Duration) ([]Message, error) {
	return nil, storageerr.NotImplemented
}

// Peek returns up to limit visible messages, from r, and changes nothing.
func (s *Service) Peek(ctx context.Context, r ranges.Reader, q Queue, limit int) ([]Message, error) {
	return nil, storageerr.NotImplemented
}

// Update hides a message for a time from now on, none at all for zero, and replaces its text unless text is nil. The
// result has the new receipt, and no text.
func (s *Service) Update(
	ctx context.Context, q Queue, id MessageID, receipt string, timeout time.Duration, text []byte,
) (Message, error) {
	return Message{}, storageerr.NotImplemented
}

// Delete deletes a message.
func (s *Service) Delete(ctx context.Context, q Queue, id MessageID, receipt string) error {
	return storageerr.NotImplemented
}

// Clear deletes all messages that are in the queue when it begins.
func (s *Service) Clear(ctx context.Context, q Queue) error { return storageerr.NotImplemented }

// Count returns how many messages are in the queue, from r: visible or not, and those that have expired and are not
// collected yet.
func (s *Service) Count(ctx context.Context, r ranges.Reader, q Queue) (uint64, error) {
	return 0, storageerr.NotImplemented
}
