package api

import (
	"context"

	"antipode/api/operation"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/services/storageerr"
)

// errCopyIncomplete refuses reads of a secondary whose copy is being made (protocol/service.md 11): what it has of a
// partition may be a part.
var errCopyIncomplete = storageerr.ServerBusy.Saying(
	"The secondary is being filled with a copy of the account, and cannot be read before that is complete.")

// unreadable is why the record of the account does not let its secondary be read.
func (x *exchange) unreadable() error {
	a := x.req.Account
	switch {
	case !x.req.Secondary:
	case !a.Redundancy.Readable():
		return storageerr.ReadsDisabled
	case a.Partial() && x.asked.Secondary != operation.Only:
		return errCopyIncomplete
	}
	return nil
}

// incomplete is why the secondary cannot be read where the record of the account has it as whole.
func (x *exchange) incomplete(ctx context.Context) error {
	if !x.req.Secondary || x.asked.Secondary == operation.Only {
		return nil
	}
	whole, err := x.o.Authority.CopyWhole(ctx, x.req.Account, x.service)
	if err == nil && !whole {
		err = errCopyIncomplete
	}
	return err
}

// forward has another location answer the request. It returns routing.ErrMoved for a read that this location does not have
// either: the account has been moved, perhaps to here.
func (x *exchange) forward(to geo.Location) error {
	if x.strange() {
		return x.refusal
	}
	if x.notHere() || routing.Moved(x.routed(), x.o.Location) {
		return routing.ErrNeither
	}
	if err := checkLength(x.r, x.service); err != nil {
		return err // As at a gateway.
	}
	x.op = opForwarded
	pass := func() error { return x.o.Forward.Forward(x.routed(), to) }
	if x.signed(x.req.Account) != nil {
		return pass() // It may be a stranger's: the other location sees.
	}
	return x.ofAccount(pass)
}

// doubted reports whether this location would serve a request under the primary name, and another one may have become
// the primary without being asked (R21). A gateway asks that one first, since it may reach both. A read goes there only
// where an epoch above is known: a location that waits for an answer still reads, and must not wait for one that is dead.
func (x *exchange) doubted(want geo.Location) bool {
	switch {
	case want != x.o.Location || x.req.Secondary:
		return false
	case x.asked.Effect == operation.Reads:
		return x.o.Authority.Passed(x.req.Account)
	}
	return !x.o.Authority.UpToDate(x.req.Account)
}

// outrun refuses a request under the primary name that a gateway sends with a higher epoch than the account has here: the
// location was passed over while it was cut off, and what it acknowledged now would be lost (R20).
func (x *exchange) outrun(want geo.Location) error {
	if want != x.o.Location || x.req.Secondary {
		return nil
	}
	if !routing.Outrun(x.routed(), want, x.req.Account.GeoEpoch()) {
		return nil
	}
	x.op = opForwarded
	return routing.ErrAway
}

// notHere reports whether a gateway asked for an account that is not served here.
func (x *exchange) notHere() bool {
	if !routing.NotHere(x.routed(), x.o.Location) {
		return false
	}
	x.op = opForwarded // Counted by the front end that serves it.
	return true
}
