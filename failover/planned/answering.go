package planned

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"antipode/directory/batch"
	"antipode/directory/record"
	"antipode/geo"
	"antipode/replication/link"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// A move stops the writes of a healthy primary, and needs the other location to end that. So it asks it first, and again
// while it waits with closed gates (R19). What was answered for one account counts for all.

const (
	// answerFresh is how long an answer of the other location counts.
	answerFresh = time.Second
	// silentFresh is how long nobody asks again after there was none.
	silentFresh = 100 * time.Millisecond
)

// answering is whether the other location answers. The zero value does not know. Times are on the monotonic clock. Methods
// may be called concurrently.
type answering struct {
	mu sync.Mutex
	// known: there was a question. asked is when the last one was asked, ended when its outcome err was known; since is
	// when the first of those was asked that have had no answer in a row: no operationWait passed between two of them.
	// All guarded by mu.
	known               bool
	asked, ended, since time.Duration
	err                 error
}

// fresh returns the last outcome, if it still counts.
func (s *answering) fresh(now time.Duration) (ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return s.known && now-s.asked < answerFresh, nil
	}
	return now-s.ended < silentFresh, s.err
}

// set takes the outcome of a question. One that was asked before the last answer, or before the last question, says less
// than that.
func (s *answering) set(asked, ended time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && asked < s.asked && (err != nil || s.err == nil) {
		return
	}
	if err != nil && (s.err == nil || asked-s.ended > record.OperationWait) {
		s.since = asked
	}
	s.known, s.asked, s.ended, s.err = true, asked, ended, err
}

// silent is for how long there has been no answer.
func (s *answering) silent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return 0
	}
	return s.ended - s.since
}

// answers returns nil if the catalog of the other location has answered within answerFresh. Else it asks that about an
// account, for operationWait at most. That its record has not arrived there is an answer: what keeps one account from
// arriving must not count for all others.
func (mv *Mover) answers(ctx context.Context, a catalog.Account) error {
	ask := func() error {
		if ok, err := mv.answering.fresh(mv.clock.Mono()); ok {
			return err
		}
		alone, end := mv.within(batch.Apart(ctx), record.OperationWait) // By itself: it has less time than others.
		defer end()
		asked := mv.clock.Mono()
		err := mv.peer.Announce(alone, a)
		if row, ok := storageerr.Of(err); ok && (row.Row == record.NotArrived(a.Name, mv.other) || !busy(row.Row)) {
			err = nil // Its catalog has answered, if not what it is to say in the end.
		}
		if err != nil && ctx.Err() != nil {
			return err // Who asked does not wait any more, which says nothing of the other location.
		}
		mv.answering.set(asked, mv.clock.Mono(), err)
		return err
	}
	return batch.Do(ctx, ask)
}

// busy reports whether a call may have reached no catalog that could read.
func busy(row storageerr.Row) bool {
	return row.Code == storageerr.ServerBusy.Code || row.Code == storageerr.OperationTimedOut.Code
}

// silent is the text for operators: the other location does not answer. Where an operator cut the link, that location
// runs, and the link is to be healed. The cut may be at its end, which only its words show.
func (mv *Mover) silent(err error) string {
	if strings.Contains(err.Error(), link.ErrCut.Error()) {
		return fmt.Sprintf("%s is not reached, since an operator cut the link (antipodectl link heal)", mv.other)
	}
	if strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		return fmt.Sprintf("%s does not answer in time", mv.other)
	}
	why := strings.TrimPrefix(strings.ReplaceAll(err.Error(), record.MethodAnnounce+": ", ""), string(mv.other)+": ")
	return fmt.Sprintf("%s does not answer: %s", mv.other, why)
}

// CheckMove returns why the planned move of an account would not begin for want of the other location: ServerBusy if that
// does not answer within operationWait. What else refuses it is Move's.
func (mv *Mover) CheckMove(ctx context.Context, name geo.Account) error {
	a, err := mv.accounts.Account(ctx, name)
	if err != nil || a.Primary != mv.stamp.Location() || !a.Redundancy.Geo() || a.Operation != nil {
		return nil //nolint:nilerr // Move says so, if it is still so then.
	}
	if err = mv.answers(ctx, *a); err == nil {
		return nil
	}
	return storageerr.ServerBusy.Saying(mv.silent(err) + "; nothing was changed")
}
