package api

import (
	"context"
	"fmt"
	"time"

	"antipode/api/operation"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

const (
	// movingWaitMax is how long a request waits for the failover of its account, before its body is read: above what one
	// takes while clients write.
	movingWaitMax = 3 * time.Second
	// movingPoll is after how long it looks again.
	movingPoll = 20 * time.Millisecond
)

// awaitMove waits while this location may not serve the request since the account is on its way to the other one (R19):
// writes once the gates are closed, reads too while the other location may have taken the account. Then the request is
// served where the account is. It returns ServerBusy, which names both locations, if that takes too long.
//
// Requests that wait count as those of the account under way: one that stays on its way must not keep the others out. What
// is not signed does not wait, and is refused behind.
func (x *exchange) awaitMove(ctx context.Context) error {
	if !x.withheld() || x.verify(x.req.Account) != nil {
		return nil
	}
	name := x.req.Account.Name
	if !x.gate.enterAccount(name) {
		x.op = opTooManyOfAccount
		return errTooMany
	}
	defer x.gate.leaveAccount(name)
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
