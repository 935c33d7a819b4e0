package blobs

import (
	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/lease"
	"antipode/stamp/kv"
)

// DeleteContainer is catalog.Delete of a blob container under a guard.
type DeleteContainer struct {
	catalog.Delete
	Guard
}

// Evaluate implements services.Write.
func (d *DeleteContainer) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	if err := d.checkContainer(get, d.Service, d.Account, d.Name); err != nil {
		return services.Effect{}, err
	}
	return d.Delete.Evaluate(get, at)
}

// SetContainerMetadata is catalog.SetMetadata of a blob container under a guard.
type SetContainerMetadata struct {
	catalog.SetMetadata
	Guard
}

// Evaluate implements services.Write.
func (w *SetContainerMetadata) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	if err := w.checkContainer(get, w.Service, w.Account, w.Name); err != nil {
		return services.Effect{}, err
	}
	return w.SetMetadata.Evaluate(get, at)
}

// SetContainerPolicies is catalog.SetPolicies of a blob container under a guard.
type SetContainerPolicies struct {
	catalog.SetPolicies
	Guard
}

// Evaluate implements services.Write.
func (w *SetContainerPolicies) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	if err := w.checkContainer(get, w.Service, w.Account, w.Name); err != nil {
		return services.Effect{}, err
	}
	return w.SetPolicies.Evaluate(get, at)
}

// checkContainer tests the guard on a container that must exist.
func (g *Guard) checkContainer(get kv.Getter, s geo.Service, a geo.Account, name string) error {
	c, err := catalog.GetContainer(get, s, a, name)
	if err != nil {
		return err
	}
	return g.check(false, true, State{Modified: c.Modified, Lease: c.Lease}, lease.OfContainer())
}
