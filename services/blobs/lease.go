package blobs

import (
	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/lease"
	"antipode/stamp/kv"
)

// LeaseBlob is Lease Blob (protocol/blob.md B20). It leaves ETag and Last-Modified.
type LeaseBlob struct {
	// Command has a guard without a lease: Request has it.
	Command
	Request lease.Request
	// Lease is the result, at the time At of the clock.
	Lease lease.Lease
	At    geo.Timestamp
}

// Deletes implements services.Deletion: a lease whose ID nobody has must not keep a blob that is to make room.
func (w *LeaseBlob) Deletes() bool { return w.Request.Ends() }

// Evaluate implements services.Write.
func (w *LeaseBlob) Evaluate(get kv.Getter, _ geo.Timestamp) (services.Effect, error) {
	b, err := GetBlob(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	if err := w.check(false, true, &b); err != nil {
		return services.Effect{}, err
	}
	before := b.Lease
	if b.Lease, err = before.Do(w.Request, w.now); err != nil {
		return services.Effect{}, err
	}
	w.Lease, w.At, w.Modified = b.Lease, w.now, b.Modified
	if b.Lease == before {
		return services.Effect{}, nil
	}
	return b.effect()
}

// LeaseContainer is catalog.SetLease under a guard, which has no lease: the request has it.
type LeaseContainer struct {
	catalog.SetLease
	Guard
}

// Evaluate implements services.Write.
func (w *LeaseContainer) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	if err := w.checkContainer(get, geo.Blob, w.Account, w.Name); err != nil {
		return services.Effect{}, err
	}
	w.At = w.now
	return w.SetLease.Evaluate(get, at)
}
