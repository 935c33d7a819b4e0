package queues

import (
	"context"
)

// The changes of a Keeper. Each commits the dictionary first, and then the heads of subqueues, but for a new one, which
// is open before it is in the dictionary. One that stops in between is finished by settle.

// addSubqueue adds a subqueue to a queue, whose dictionary is d, in one of some rooms; ErrStale if it is not d any more.
func (s *Service) addSubqueue(ctx context.Context, q Queue, d *Dictionary, in []room) (SubqueueID, error) {
	id, err := s.choose.newSubqueueIn(in)
	if err != nil {
		return 0, err
	}
	if err := s.openSubqueue(ctx, Subqueue{q, id}); err != nil {
		return 0, err
	}
	to := d.clone()
	to.Subqueues = append(to.Subqueues, Entry{ID: id, Schema: schemaCurrent, State: StateAll})
	return id, s.o.Writer.Write(ctx, &ChangeDictionary{Queue: q, To: to})
}

func (s *Service) openSubqueue(ctx context.Context, at Subqueue) error {
	open := &Open{Command: Command{At: at}}
	return s.write(ctx, open, &open.Command)
}

// setState gives a subqueue a state that is more closed.
func (s *Service) setState(ctx context.Context, q Queue, d *Dictionary, id SubqueueID, state State) error {
	to := d.clone()
	for i := range to.Subqueues {
		if to.Subqueues[i].ID == id {
			to.Subqueues[i].State = state
		}
	}
	if err := s.o.Writer.Write(ctx, &ChangeDictionary{Queue: q, To: to, Clears: state == StateToBeDeleted}); err != nil {
		return err
	}
	return s.closeSubqueue(ctx, Subqueue{q, id}, state)
}

func (s *Service) closeSubqueue(ctx context.Context, at Subqueue, state State) error {
	c := &SetState{Command: Command{At: at}, To: state}
	return s.write(ctx, c, &c.Command)
}

// settle commits what makes a dictionary and its heads agree.
func (s *Service) settle(ctx context.Context, q Queue, do settled) error {
	for _, id := range do.opens {
		if err := s.openSubqueue(ctx, Subqueue{q, id}); err != nil {
			return err
		}
	}
	for _, e := range do.closes {
		if err := s.closeSubqueue(ctx, Subqueue{q, e.ID}, e.State); err != nil {
			return err
		}
	}
	if do.to == nil {
		return nil
	}
	if len(do.to.with(StateAll)) == 0 { // The dictionary keeps one that takes messages.
		id, err := s.choose.newSubqueue()
		if err != nil {
			return err
		}
		if err := s.openSubqueue(ctx, Subqueue{q, id}); err != nil {
			return err
		}
		do.to.Subqueues = append(do.to.Subqueues, Entry{ID: id, Schema: schemaCurrent, State: StateAll})
	}
	return s.o.Writer.Write(ctx, &ChangeDictionary{Queue: q, To: do.to})
}
