package catalog

import (
	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Policy is a stored access policy of a container: what a signature that names it permits. What is empty
// the signature has to say itself.
type Policy struct {
	ID string `json:"id"`
	// Start and Expiry are times in the form YYYY-MM-DDThh:mm:ss.fffffffZ.
	Start  string `json:"start,omitempty"`
	Expiry string `json:"expiry,omitempty"`
	// Permission has the letters of the service.
	Permission string `json:"permission,omitempty"`
}

// SetPolicies replaces the stored access policies of a container (protocol/queue.md 7.5). Its generation
// stays: what is in it is not touched.
type SetPolicies struct {
	Service geo.Service
	Account geo.Account
	Name    string
	// Policies is what is stored; nothing clears it.
	Policies []Policy
	// Modified is the result.
	Modified geo.Timestamp
}

// Partition implements services.Write.
func (w *SetPolicies) Partition() keys.Partition {
	return ContainerPartition(w.Service, w.Account, w.Name)
}

// Gone implements services.Write.
func (w *SetPolicies) Gone() error { return storageerr.AccountNotFound }

// Evaluate implements services.Write.
func (w *SetPolicies) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	c, err := GetContainer(get, w.Service, w.Account, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	c.Policies, c.Modified = w.Policies, at
	w.Modified = at
	return c.effect()
}
