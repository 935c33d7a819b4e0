package planned

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/route"
)

// Little on its way, and a catalog that answers, do not show that the streams move: a location whose bus or whose
// ranges take nothing answers all the same. So before its gates close a move marks where the streams of the account
// end and has each range commit a closed record; and it waits until the other location has acknowledged and received
// all of that (R19). The record of the move is always among it. Marks are in memory: another process takes its own.

// progressMax is how old a mark may be when the gates close. A stream that needs longer would keep them closed as
// long.
const progressMax = 5 * time.Second

// mark is what the ranges of an account had committed at a look. It is not changed.
type mark struct {
	epoch geo.Epoch
	until geo.Timestamp
	at    time.Time
	// found is by range, in the order of route.Table.Everywhere.
	found []drain
}

// marks are those of moves that drain. The zero value has none. Methods may be called concurrently.
type marks struct {
	mu sync.Mutex
	of map[geo.Account]*mark // guarded by mu
}

// get returns the mark of a move, nil for none.
func (s *marks) get(a *catalog.Account) *mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.of[a.Name]; m != nil && m.epoch == a.GeoEpoch() && m.until == a.Operation.Move.Until {
		return m
	}
	return nil
}

// set replaces the mark of an account; nil takes it away.
func (s *marks) set(a geo.Account, m *mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[geo.Account]*mark{}
	}
	if s.of[a] = m; m == nil {
		delete(s.of, a)
	}
}

// keep forgets the accounts without an operation.
func (s *marks) keep(operations map[geo.Account]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.of, func(name geo.Account, _ *mark) bool { return !operations[name] })
}

// stands returns what of a mark the other location does not have yet, by what was found now; nil: it has all.
func (mv *Mover) stands(ctx context.Context, a catalog.Account, m *mark, now []drain) error {
	for i, r := range mv.stamp.Route().Everywhere(a.Name) {
		if now[i].behind(m.found[i].Heads) {
			return fmt.Errorf("%s did not acknowledge what the %s range had committed", a.Secondary, r.Service)
		}
		has, err := mv.has(ctx, r.ID, m.found[i].Closed)
		switch {
		case err != nil:
			return fmt.Errorf("%s did not answer what it has of the %s range: %w", a.Secondary, r.Service, err)
		case !has:
			return notReceived(a.Secondary, r)
		}
	}
	if mv.clock.Now().Sub(m.at) > progressMax {
		mv.marks.set(a.Name, nil)
		return fmt.Errorf("%s was more than %s behind", a.Secondary, progressMax)
	}
	return nil
}

func notReceived(at geo.Location, r route.Range) error {
	return fmt.Errorf("%s did not receive what the %s range had sent", at, r.Service)
}

// behind reports whether something up to heads is not acknowledged.
func (f drain) behind(marked heads) bool {
	if f.Waiting > 0 && len(f.Behind) == 0 {
		return true // The range is led by an earlier version, which does not name the streams.
	}
	for _, s := range marked {
		for _, b := range f.Behind {
			if b.Lane == s.Lane && b.Seq < s.Seq {
				return true
			}
		}
	}
	return false
}

// receptions are what the other location had committed of the ranges here when it was asked last: what was learned
// for one account counts for all. The zero value knows nothing. Methods may be called concurrently.
type receptions struct {
	mu sync.Mutex
	of map[geo.RangeID]reception // guarded by mu
}

// reception is an answer, or why there was none.
type reception struct {
	upTo geo.Timestamp
	at   time.Duration // on the monotonic clock
	err  error
}

func (s *receptions) get(r geo.RangeID) (reception, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, ok := s.of[r]
	return have, ok
}

func (s *receptions) set(r geo.RangeID, to reception) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[geo.RangeID]reception{}
	}
	s.of[r] = to
}

// has reports whether the other location has committed what a range here had closed at a time; 0: the range is led by
// an earlier version, which closes nothing for a mark. It asks again after silentFresh at the earliest.
func (mv *Mover) has(ctx context.Context, r geo.RangeID, closed geo.Timestamp) (bool, error) {
	if mv.received == nil || closed == 0 {
		return true, nil
	}
	have, ok := mv.receptions.get(r)
	if ok && have.err == nil && have.upTo >= closed {
		return true, nil
	}
	if !ok || mv.clock.Mono()-have.at >= silentFresh {
		asked, end := mv.within(ctx, record.OperationWait)
		defer end()
		have.upTo, have.err = mv.received(asked, r)
		have.at = mv.clock.Mono()
		if ctx.Err() == nil { // Else who asked does not wait any more.
			mv.receptions.set(r, have)
		}
	}
	return have.upTo >= closed, have.err
}

// CheckFlow is CheckMove, and also returns why the move would wait in vain: ServerBusy if of one of its ranges the
// other location receives nothing for progressMax. It has them commit a closed record, and changes nothing else.
func (mv *Mover) CheckFlow(ctx context.Context, name geo.Account) error {
	if err := mv.CheckMove(ctx, name); err != nil {
		return err
	}
	a, err := mv.accounts.Account(ctx, name)
	if err != nil || mv.received == nil || a.Primary != mv.stamp.Location() || !a.Redundancy.Geo() || a.Operation != nil {
		return nil //nolint:nilerr // As in CheckMove.
	}
	if err := mv.flows(ctx, *a); err != nil {
		return storageerr.ServerBusy.Saying(err.Error() + "; nothing was changed")
	}
	return nil
}

// flows waits until the other location has received something more of each range of an account.
func (mv *Mover) flows(ctx context.Context, a catalog.Account) error {
	ctx, end := mv.within(ctx, progressMax)
	defer end()
	all := mv.stamp.Route().Everywhere(a.Name)
	before := make([]geo.Timestamp, len(all))
	err := SideBySide(all, func(i int, r route.Range) (err error) {
		if before[i], err = mv.received(ctx, r.ID); err != nil {
			return fmt.Errorf("what %s has of the %s range is not known: %w", a.Secondary, r.Service, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := mv.drains(ctx, a, true); err != nil {
		return err
	}
	return SideBySide(all, func(i int, r route.Range) error {
		for {
			if now, err := mv.received(ctx, r.ID); err == nil && now > before[i] {
				return nil
			}
			if mv.wait(ctx, record.MovePause) != nil {
				return notReceived(a.Secondary, r)
			}
		}
	})
}

// SideBySide calls f for all at once, since the link may be slow, and returns the error of the first that has one.
func SideBySide[T any](all []T, f func(i int, v T) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, v := range all {
		wg.Go(func() { errs[i] = f(i, v) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
