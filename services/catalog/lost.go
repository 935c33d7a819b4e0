package catalog

import (
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// LostClaim reads what the range of a service claims about the lost changes of an account, in the epoch that the present
// primary began (R22); nil for nothing.
func LostClaim(get kv.Getter, s geo.Service, a geo.Account, by geo.Epoch) (*change.LostClaim, error) {
	b, ok, err := get.Get(append(keys.LostClaims(s, a).Append(nil), keys.ClaimRow(by)...))
	if err != nil || !ok {
		return nil, err
	}
	claim, err := change.ParseLostClaim(b)
	return &claim, err
}
