package queues

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
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
	// Random is what ids and choices are made of. It may be read concurrently. Nil means crypto/rand.
	Random io.Reader
	// Alone: reads of several subqueues come one after the other, in the caller's goroutine, as a simulation needs it.
	Alone bool
	// Collected is called with how many messages were deleted for nobody who named them: since they expired, or since
	// their subqueue is to be deleted. It may be called concurrently. May be nil.
	Collected func(messages int, expired bool)
}

// Service is the queues of a location. It spreads the messages of a queue over its subqueues. Its calls change
// nothing where they fail, unless the error is kv.ErrUnknown: then they may have. Methods may be called concurrently.
type Service struct {
	o      Options
	choose chooser
	loads  loads
}

// New returns the queues of a location.
func New(o Options) *Service {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Collected == nil {
		o.Collected = func(int, bool) {}
	}
	return &Service{o: o, choose: chooser{random: o.Random}}
}

// staleMax is how often a call is made again of the present dictionary, before it is answered as busy.
const staleMax = 4

// Put puts a message. The result has no text.
func (s *Service) Put(ctx context.Context, q Queue, o PutOptions) (Message, error) {
	id, err := s.choose.newID()
	if err != nil {
		return Message{}, err
	}
	for try := range staleMax {
		d, err := s.dictionary(ctx, q, try > 0)
		if err != nil {
			return Message{}, err
		}
		at, err := s.choose.forPut(q, d)
		if err != nil {
			return Message{}, err
		}
		c := &Put{Command: Command{At: at}, ID: id, PutOptions: o}
		if err = s.write(ctx, c, &c.Command); !errors.Is(err, ErrStale) {
			return c.Message, err
		}
	}
	return Message{}, kv.ErrBusy
}

// Get takes up to limit visible messages and hides them for a time. It is not to be repeated after kv.ErrUnknown: it
// may have hidden them.
func (s *Service) Get(ctx context.Context, q Queue, limit int, timeout time.Duration) (out []Message, err error) {
	asked := map[SubqueueID]bool{}
	for try := range staleMax {
		d, err := s.dictionary(ctx, q, try > 0)
		if err != nil {
			return answerGot(out, err)
		}
		in, err := s.choose.forGet(q, d)
		if err != nil {
			return answerGot(out, err)
		}
		stale := false
		for _, at := range in {
			if asked[at.ID] {
				continue
			}
			got, err := s.getFrom(ctx, at, limit-len(out), timeout)
			out = append(out, got...)
			switch {
			case errors.Is(err, ErrStale):
				stale = true
				continue
			case err != nil || len(out) == limit:
				return answerGot(out, err)
			}
			asked[at.ID] = true
		}
		if !stale && try > 0 {
			return out, nil
		}
		// A queue gives what it has: nothing is known here of subqueues that were made elsewhere meanwhile.
	}
	return answerGot(out, kv.ErrBusy)
}

// answerGot returns the messages that a Get has taken; the error only if there are none, since they are hidden now.
func answerGot(out []Message, err error) ([]Message, error) {
	if len(out) > 0 {
		return out, nil
	}
	return nil, err
}

// getFrom asks one subqueue.
func (s *Service) getFrom(ctx context.Context, at Subqueue, limit int, timeout time.Duration) ([]Message, error) {
	for {
		c := &Get{Command: Command{At: at}, Max: limit, Timeout: timeout}
		if err := s.write(ctx, c, &c.Command); err != nil {
			return nil, err
		}
		if len(c.Messages) > 0 || !c.More {
			return c.Messages, nil
		}
	}
}

// Peek returns up to limit visible messages, from r, and changes nothing. It walks over those that have expired for as
// long as the call may take, and up to a bound of work. With a message it gives what it has found by then; without one it is
// kv.ErrBusy, since nobody knows that the queue is empty: until what has expired is collected.
func (s *Service) Peek(ctx context.Context, r ranges.Reader, q Queue, limit int) (out []Message, err error) {
	d, err := s.read(ctx, r, q)
	if err != nil {
		return nil, err
	}
	in, err := s.choose.forGet(q, d)
	if err != nil {
		return nil, err
	}
	unseen, budget := false, services.NewWorkBudget(ctx, s.o.Clock, peekWorkMax)
	for _, at := range in {
		got, more, err := s.peekAt(ctx, r, at, limit-len(out), budget)
		if err != nil {
			return nil, err
		}
		unseen = unseen || more
		if out = append(out, got...); len(out) == limit {
			break
		}
	}
	if unseen && len(out) == 0 {
		return nil, kv.ErrBusy
	}
	return out, nil
}

func (s *Service) peekAt(
	ctx context.Context, r ranges.Reader, at Subqueue, limit int, b *services.Budget,
) (out []Message, more bool, err error) {
	snap, err := ranges.Snapshot(ctx, r, s.o.Stamp.Route().Of(at.Partition()))
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	return peek(ctx, snap, at, limit, geo.TimestampOf(s.o.Clock.Now()), b)
}

// Update hides a message for a time from now on, none at all for zero, and replaces its text unless text is nil. The
// result has the new receipt, and no text.
func (s *Service) Update(
	ctx context.Context, q Queue, id MessageID, receipt string, timeout time.Duration, text []byte,
) (Message, error) {
	c, err := NewUpdate(q, id, receipt, timeout, text)
	if err != nil {
		return Message{}, err
	}
	err = s.write(ctx, c, &c.Command)
	return c.Message, busyIfStale(err)
}

// Delete deletes a message.
func (s *Service) Delete(ctx context.Context, q Queue, id MessageID, receipt string) error {
	c, err := NewDelete(q, id, receipt)
	if err != nil {
		return err
	}
	return busyIfStale(s.write(ctx, c, &c.Command))
}

// busyIfStale is for commands that a receipt sends to its subqueue: no dictionary would send them elsewhere.
func busyIfStale(err error) error {
	if errors.Is(err, ErrStale) {
		return kv.ErrBusy
	}
	return err
}

// Count returns how many messages are in the queue, from r: visible or not, and those that have expired and are not
// collected yet.
func (s *Service) Count(ctx context.Context, r ranges.Reader, q Queue) (uint64, error) {
	d, err := s.read(ctx, r, q)
	if err != nil {
		return 0, err
	}
	total := uint64(0)
	counts, err := s.counts(ctx, r, q, d.live())
	for _, c := range counts {
		total += c.n
	}
	return total, err
}

type counted struct {
	n     uint64
	state State
}

// counts reads how many messages are in some subqueues, all at once, and the states of their heads.
func (s *Service) counts(ctx context.Context, r ranges.Reader, q Queue, of []Entry) ([]counted, error) {
	out, errs := make([]counted, len(of)), make([]error, len(of))
	var asked sync.WaitGroup
	for i, e := range of {
		at := Subqueue{q, e.ID}
		ask := func() {
			errs[i] = r.Read(ctx, s.o.Stamp.Route().Of(at.Partition()), func(st ranges.State) (err error) {
				out[i].n, out[i].state, err = count(st, at)
				return err
			})
		}
		if s.o.Alone || i == len(of)-1 {
			ask() // The only one, of most queues.
		} else {
			asked.Go(ask)
		}
	}
	asked.Wait()
	return out, errors.Join(errs...)
}

// dictionary returns the dictionary of a queue, as it is now or was a moment ago.
func (s *Service) dictionary(ctx context.Context, q Queue, fresh bool) (*Dictionary, error) {
	now := s.o.Clock.Mono()
	if d, ok := s.choose.known.dictionary(q, now-dictionaryAge); ok && !fresh {
		return d, nil
	}
	d, err := s.read(ctx, s.o.Stamp, q)
	if err == nil {
		s.choose.known.learn(q, d, now)
	}
	return d, err
}

// read reads the dictionary of a queue.
func (s *Service) read(ctx context.Context, r ranges.Reader, q Queue) (d *Dictionary, err error) {
	err = r.Read(ctx, s.o.Stamp.Route().Of(q.DictionaryPartition()), func(st ranges.State) (err error) {
		d, err = ReadDictionary(st, q)
		return err
	})
	return d, err
}

// write commits a command, counts it, and remembers how full it left its subqueue.
func (s *Service) write(ctx context.Context, w services.Write, c *Command) error {
	err := s.o.Writer.Write(ctx, w)
	if isLoad(w, err) {
		s.loads.add(c.At, errors.Is(err, kv.ErrBusy))
	}
	switch {
	case err == nil:
		s.choose.known.used(c.At, c.Left)
	case errors.Is(err, storageerr.QueueNotFound):
		s.choose.known.forget(c.At.Queue)
	}
	return err
}

// isLoad reports whether more subqueues would take a part of what a command is. They would not of a Get that finds
// nothing, which then asks the others: a queue that is polled would get ever more of them, and each poll ask them all.
func isLoad(w services.Write, err error) bool {
	if get, is := w.(*Get); is && err == nil {
		return len(get.Messages) > 0 || get.More
	}
	_, rest := w.(services.Remainder)
	return !rest
}
