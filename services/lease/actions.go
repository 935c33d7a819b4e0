package lease

import (
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/storageerr"
)

// Action is one action of Lease Blob and Lease Container.
type Action byte

// The actions.
const (
	Acquire Action = iota + 1
	Renew
	Change
	Release
	Break
)

// Request is what a client asks of a lease.
type Request struct {
	Action Action
	// ID is that of the lease: of Acquire the proposed one, or one that was made for it. Break needs none.
	ID ID
	// Proposed is the new ID of Change.
	Proposed ID
	// Seconds is the duration of Acquire; zero: without end.
	Seconds uint32
	// Period is the longest rest that Break leaves, in seconds; nil: all of it, and none of a lease without end.
	Period *uint32
}

// Ends reports whether the request can only end a lease.
func (r Request) Ends() bool { return r.Action == Release || r.Action == Break }

// Do returns the lease after an action, by the table of protocol/blob.md 17.3, whose errors are 409.
func (l Lease) Do(r Request, at geo.Timestamp) (Lease, error) {
	switch r.Action {
	case Acquire:
		return l.acquire(r, at)
	case Renew:
		return l.renew(r.ID, at)
	case Change:
		return l.change(r.ID, r.Proposed, at)
	case Release:
		if l.Kind == KindNone || l.ID != r.ID {
			return l, storageerr.LeaseIDMismatchWithLease
		}
		return Lease{}, nil
	default:
		return l.broken(r.Period, at)
	}
}

func (l Lease) acquire(r Request, at geo.Timestamp) (Lease, error) {
	switch s := l.State(at); {
	case s.Locked() && l.ID != r.ID && !plantedbugs.Planted(plantedbugs.LeaseTaken):
		return l, storageerr.LeaseAlreadyPresent
	case s == Breaking:
		return l, storageerr.LeaseIsBreakingAndCannotBeAcquired
	}
	return taken(r.ID, r.Seconds, at), nil
}

func taken(id ID, seconds uint32, at geo.Timestamp) Lease {
	l := Lease{Kind: KindTaken, ID: id, Seconds: seconds}
	if seconds > 0 {
		l.Until = after(at, seconds)
	}
	return l
}

func (l Lease) renew(id ID, at geo.Timestamp) (Lease, error) {
	switch {
	case l.Kind == KindNone || l.ID != id:
		return l, storageerr.LeaseIDMismatchWithLease
	case l.Kind == KindBroken:
		return l, storageerr.LeaseIsBrokenAndCannotBeRenewed
	}
	return taken(id, l.Seconds, at), nil
}

// change takes the new ID for the old one, too, so that a client may try again.
func (l Lease) change(id, proposed ID, at geo.Timestamp) (Lease, error) {
	switch s := l.State(at); {
	case !s.Locked():
		return l, storageerr.LeaseNotPresentWithLease
	case l.ID != id && l.ID != proposed:
		return l, storageerr.LeaseIDMismatchWithLease
	case s == Breaking:
		return l, storageerr.LeaseIsBreakingAndCannotBeChanged
	}
	l.ID = proposed
	return l, nil
}

func (l Lease) broken(period *uint32, at geo.Timestamp) (Lease, error) {
	end := at
	switch s := l.State(at); {
	case s == Available:
		return l, storageerr.LeaseNotPresentWithLease
	case s == Broken:
		return l, nil
	case s == Expired:
	case l.Until != 0 && period != nil:
		end = min(l.Until, after(at, *period))
	case l.Until != 0:
		end = l.Until
	case period != nil:
		end = after(at, *period)
	}
	l.Kind, l.Until = KindBroken, end
	return l, nil
}

// Left is how long until a break is over, in seconds, rounded up: it is not over before.
func (l Lease) Left(at geo.Timestamp) int {
	if l.State(at) != Breaking {
		return 0
	}
	return int((l.Until - at + geo.TicksPerSecond - 1) / geo.TicksPerSecond)
}

// Errors are the errors of a request to something that may be leased; blobs and containers have different ones.
type Errors struct{ NotPresent, Mismatch storageerr.Row }

// OfBlob are the errors of a request to a blob.
func OfBlob() Errors { return Errors{storageerr.LeaseNotPresentOnBlob, storageerr.LeaseMismatchOnBlob} }

// OfContainer are the errors of a request to a container.
func OfContainer() Errors {
	return Errors{storageerr.LeaseNotPresentOnContainer, storageerr.LeaseMismatchOnContainer}
}

// Check tests the ID that a request names, nil for none, by the table of protocol/blob.md 17.4. needed: without the ID the
// request is refused while the lease is locked. The errors are 412.
func (l Lease) Check(id *ID, needed bool, at geo.Timestamp, errs Errors) error {
	s := l.State(at)
	switch {
	case id == nil && needed && s.Locked():
		return storageerr.LeaseIDMissing
	case id == nil:
		return nil
	case s.Locked() && l.ID != *id:
		return errs.Mismatch
	case s.Locked():
		return nil
	case s == Expired && l.ID == *id:
		return storageerr.LeaseLost
	}
	return errs.NotPresent
}
