package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/api/operation"
	"antipode/api/routing"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

const (
	// movingWaitMax is how long a request waits for the failover of its account, before its body is read: above what one
	// takes while clients write.
	movingWaitMax = 3 * time.Second
	// movingPoll is after how long it looks again.
	movingPoll = 20 * time.Millisecond
)

// answerMoving answers the request within ctx, wherever the account is. A read looks again where that is while neither
// location serves it. Between the take of an account at the one location and the record of that at the other one (R19) each
// names the other one for reads of the secondary: the former primary is about to follow. A read that was under way when its
// location left its role looks again, too. After movingWaitMax the two do not agree for another reason.
func (x *exchange) answerMoving(ctx context.Context, badTimeout error) error {
	err := x.once(ctx, badTimeout)
	if !x.moved(err) || x.signed(x.req.Account) != nil {
		return err
	}
	if err := x.enterAccount(); err != nil {
		return err
	}
	defer x.leaveAccount()
	within, cancel := context.WithTimeout(ctx, movingWaitMax)
	defer cancel()
	for pause := time.Duration(0); x.moved(err); pause = movingPoll {
		if clock.Wait(within, pause) != nil {
			return err
		}
		x.common()
		if err := x.resolve(ctx); err != nil {
			return err
		}
		err = x.once(ctx, badTimeout)
	}
	return err
}

// moved reports whether the location that was to answer a read does not have the account any more, or not yet, and has said
// nothing.
func (x *exchange) moved(err error) bool {
	return errors.Is(err, routing.ErrMoved) || errors.Is(err, ranges.ErrLeft) && x.asked.Effect == operation.Reads && !x.w.Committed
}

// awaitMove waits while this location may not serve the request since the account is on its way to the other one (R19):
// writes once the gates are closed, reads too while the other location may have taken the account. Then the request is
// served where the account is. It returns ServerBusy, which names both locations, if that takes too long.
//
// Requests that wait count as those of the account under way: one that stays on its way must not keep the others out. What
// is not signed does not wait, and is refused behind.
func (x *exchange) awaitMove(ctx context.Context) error {
	if !x.withheld() || x.signed(x.req.Account) != nil {
		return nil
	}
	if err := x.enterAccount(); err != nil {
		return err
	}
	defer x.leaveAccount()
	within, cancel := context.WithTimeout(ctx, movingWaitMax)
	defer cancel()
	for x.withheld() {
		a := x.req.Account
		if clock.Wait(within, movingPoll) != nil {
			return errMoving(a)
		}
		if err := x.resolve(ctx); err != nil {
			return err
		}
	}
	return nil
}

// copyWaitMax is how long a read of `-secondary` waits for a range of the former primary to follow a failover: well above
// what that takes, and no longer, for a range that was recovered with loss stays behind.
const copyWaitMax = time.Second

// dispatchFollowing lets the service answer the request. A read that comes to the former primary of an account between the
// record in its catalog and the gate in the range waits for that: reads of the secondary go on throughout a move (R19).
func (x *exchange) dispatchFollowing(ctx context.Context) error {
	err := x.dispatch()
	if !errors.Is(err, ranges.ErrComing) || x.asked.Effect != operation.Reads {
		return err
	}
	within, cancel := context.WithTimeout(ctx, copyWaitMax)
	defer cancel()
	for errors.Is(err, ranges.ErrComing) && !x.w.Committed && clock.Wait(within, movingPoll) == nil {
		x.common()
		routing.ServedBy(x.routed(), x.o.Location)
		err = x.dispatch()
	}
	return err
}

// withheld reports whether the record of the account does not let this location serve the request.
func (x *exchange) withheld() bool {
	a := x.req.Account
	if x.req.Secondary || a.Primary != x.o.Location {
		return false
	}
	return a.Offered() || a.Closed() && x.asked.Effect != operation.Reads
}

func errMoving(a *catalog.Account) error {
	return storageerr.ServerBusy.Saying(fmt.Sprintf(
		"The account is being moved from location %s to %s. Please retry your request.", a.Primary, a.Secondary))
}
