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
	if d.Conditions != nil {
		c, err := catalog.GetContainer(get, d.Service, d.Account, d.Name)
		if err != nil {
			return services.Effect{}, err
		}
		if err := d.Conditions.Write(false, true, c.Modified); err != nil {
			return services.Effect{}, err
		}
	}
	return d.Delete.Evaluate(get, at)
}
