package catalog

import (
	"antipode/geo"
	"antipode/services"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// SetLease does something to the lease of a blob container (protocol/blob.md 17). It leaves ETag and Last-Modified.
type SetLease struct {
	Account geo.Account
	Name    string
	Request lease.Request
	// At is what the leader's clock shows: see services.Timed.
	At geo.Timestamp
	// Lease is the result, and Modified that of the container.
	Lease    lease.Lease
	Modified geo.Timestamp
}

// Deletes implements services.Deletion: a lease whose ID nobody has must not keep a container that is to make room.
func (w *SetLease) Deletes() bool { return w.Request.Ends() }

// Partition implements services.Write.
func (w *SetLease) Partition() keys.Partition { return ContainerPartition(geo.Blob, w.Account, w.Name) }

// Gone implements services.Write.
func (w *SetLease) Gone() error { return storageerr.AccountNotFound }

// Evaluate implements services.Write.
func (w *SetLease) Evaluate(get kv.Getter, _ geo.Timestamp) (services.Effect, error) {
	c, err := GetContainer(get, geo.Blob, w.Account, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	before := c.Lease
	if c.Lease, err = before.Do(w.Request, w.At); err != nil {
		return services.Effect{}, err
	}
	w.Lease, w.Modified = c.Lease, c.Modified
	if c.Lease == before {
		return services.Effect{}, nil
	}
	return c.effect()
}
