package catalog

import (
	"antipode/geo"
	"antipode/services"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// SetLease does something to the lease of a blob container (protocol/blob.md 17). It leaves ETag and Last-Modified.
type SetLease struct {
	Account geo.Account
	Name    string
	Request lease.Request
	// Lease is the result, at the time At, and Modified that of the container.
	Lease    lease.Lease
	At       geo.Timestamp
	Modified geo.Timestamp
}

// Level implements services.Leveled.
func (w *SetLease) Level() feature.Level { return feature.Leases }

// Partition implements services.Write.
func (w *SetLease) Partition() keys.Partition { return ContainerPartition(geo.Blob, w.Account, w.Name) }

// Gone implements services.Write.
func (w *SetLease) Gone() error { return storageerr.AccountNotFound }

// Evaluate implements services.Write.
func (w *SetLease) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	c, err := GetContainer(get, geo.Blob, w.Account, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	if c.Lease, err = c.Lease.Do(w.Request, at); err != nil {
		return services.Effect{}, err
	}
	w.Lease, w.At, w.Modified = c.Lease, at, c.Modified
	return c.effect()
}
