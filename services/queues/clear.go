package queues

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"antipode/stamp/kv"
)

// Clear deletes all messages that are in the queue when it begins (protocol/queue.md 9.6, 23). Its time does not depend
// on their number: subqueues are replaced, and closed before the answer, so that what is put later is in others. The
// rows of the old ones are deleted afterwards, a few of them at once.
func (s *Service) Clear(ctx context.Context, q Queue) error {
	id, err := s.choose.newSubqueue()
	if err != nil {
		return err
	}
	fresh := Subqueue{q, id}
	for range staleMax {
		d, err := s.dictionary(ctx, q, true)
		if err != nil {
			return err
		}
		switch empty, err := s.empty(ctx, q, d); {
		case err != nil:
			return err
		case empty:
			return s.closeOld(ctx, q, d)
		}
		if len(d.Subqueues) >= entriesMax {
			return kv.ErrBusy // The rows of so many are not deleted yet.
		}
		open := &Open{Command: Command{At: fresh}, Clears: true}
		if err := s.write(ctx, open, &open.Command); err != nil {
			return busyIfStale(err)
		}
		err = s.o.Writer.Write(ctx, &ChangeDictionary{Queue: q, To: d.cleared(fresh.ID), Clears: true})
		if errors.Is(err, ErrStale) {
			continue
		}
		if err != nil {
			return err
		}
		if d, err = s.dictionary(ctx, q, true); err != nil {
			return unknown(err)
		}
		return unknown(s.closeOld(ctx, q, d))
	}
	return kv.ErrBusy
}

// cleared returns the dictionary with a fresh subqueue in the place of all others that live.
func (d *Dictionary) cleared(fresh SubqueueID) *Dictionary {
	to := d.clone()
	for i := range to.Subqueues {
		if to.Subqueues[i].State != StateDisabled {
			to.Subqueues[i].State = StateToBeDeleted
		}
	}
	to.Subqueues = append(to.Subqueues, Entry{ID: fresh, Schema: schemaCurrent, State: StateAll})
	return to
}

// empty reports whether there is nothing to clear.
func (s *Service) empty(ctx context.Context, q Queue, d *Dictionary) (bool, error) {
	counts, err := s.counts(ctx, s.o.Stamp, q, d.with(StateAll, StateAllExceptPut))
	return !slices.ContainsFunc(counts, func(c counted) bool { return c.n > 0 }), err
}

// unknown is the error of a call that failed after it had an effect.
func unknown(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %v", kv.ErrUnknown, err) //nolint:errorlint // What it wraps may say that nothing happened.
}

// closeOld closes the subqueues that are to be deleted, those that another Clear has left open included: a front end
// that does not know yet of the dictionary could put messages there. Then it begins to collect them.
func (s *Service) closeOld(ctx context.Context, q Queue, d *Dictionary) error {
	old := d.with(StateToBeDeleted)
	if len(old) == 0 {
		return nil
	}
	heads, err := s.counts(ctx, s.o.Stamp, q, old)
	if err != nil {
		return err
	}
	for i, e := range old {
		if heads[i].state == StateToBeDeleted {
			continue
		}
		c := &SetState{Command: Command{At: Subqueue{q, e.ID}}, To: StateToBeDeleted}
		if err := s.write(ctx, c, &c.Command); err != nil {
			return busyIfStale(err)
		}
	}
	_, _ = s.Collect(ctx, q) // What it does not do now is done later.
	return nil
}

// Collect deletes some rows of subqueues that are to be deleted, and takes those that have no rows any more out of the
// dictionary (protocol/queue.md 23). more: there are others. It may be stopped, and begun again, anywhere.
func (s *Service) Collect(ctx context.Context, q Queue) (more bool, err error) {
	d, err := s.dictionary(ctx, q, true)
	if err != nil {
		return false, err
	}
	to := d.clone()
	for _, e := range d.with(StateToBeDeleted) {
		at := Command{At: Subqueue{q, e.ID}}
		closing := &SetState{Command: at, To: StateToBeDeleted} // One that is closed stays so, and nothing is written.
		if err := s.write(ctx, closing, &closing.Command); err != nil {
			return true, busyIfStale(err)
		}
		c := &Collect{Command: at}
		if err := s.write(ctx, c, &c.Command); err != nil {
			return true, busyIfStale(err)
		}
		s.o.Collected(c.Deleted, false)
		if c.Left > 0 {
			more = true
			break
		}
		to.Subqueues = slices.DeleteFunc(to.Subqueues, func(o Entry) bool { return o.ID == e.ID })
	}
	if len(to.Subqueues) == len(d.Subqueues) {
		return more, nil
	}
	err = s.o.Writer.Write(ctx, &ChangeDictionary{Queue: q, To: to, Clears: true})
	if errors.Is(err, ErrStale) {
		return true, nil // Another one has changed it meanwhile.
	}
	return more, err
}

// CollectExpired deletes some of the messages of one subqueue that have expired (protocol/queue.md 22), from a place on
// that an earlier call has returned; nil at first. The place is nil at the end.
func (s *Service) CollectExpired(ctx context.Context, at Subqueue, from []byte) (next []byte, err error) {
	c := &Collect{Command: Command{At: at}, From: from}
	if err = s.write(ctx, c, &c.Command); err != nil {
		return nil, busyIfStale(err)
	}
	s.o.Collected(c.Deleted, true)
	return c.Next, nil
}
