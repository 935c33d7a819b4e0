package blobs

import (
	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/stamp/kv"
)

// DeleteContainer is catalog.Delete of a blob container under conditions.
type DeleteContainer struct {
	catalog.Delete
	// Conditions may be nil.
	Conditions Conditions
}

// Evaluate implements services.Write.
func (d *DeleteContainer) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	if err := containerMeets(get, d.Conditions, d.Service, d.Account, d.Name); err != nil {
		return services.Effect{}, err
	}
	return d.Delete.Evaluate(get, at)
}

// SetContainerMetadata is catalog.SetMetadata of a blob container under conditions.
type SetContainerMetadata struct {
	catalog.SetMetadata
	// Conditions may be nil.
	Conditions Conditions
}

// Evaluate implements services.Write.
func (w *SetContainerMetadata) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	if err := containerMeets(get, w.Conditions, w.Service, w.Account, w.Name); err != nil {
		return services.Effect{}, err
	}
	return w.SetMetadata.Evaluate(get, at)
}

// containerMeets tests the conditions of a write on a container that must exist.
func containerMeets(get kv.Getter, conditions Conditions, s geo.Service, a geo.Account, name string) error {
	if conditions == nil {
		return nil
	}
	c, err := catalog.GetContainer(get, s, a, name)
	if err != nil {
		return err
	}
	return conditions.Write(false, true, c.Modified)
}
