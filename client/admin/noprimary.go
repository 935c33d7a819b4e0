package admin

import (
	"fmt"

	"antipode/geo"
)

// WithoutPrimary returns why an account has no primary, with the latest record of it, from what each location that
// answered has of the account; "" if it has one, or that is not known. An epoch is created only by the location that
// it makes primary (R19). If another location has a record of an epoch that the epoch's own primary does not have,
// that primary was set back, or recovered with loss, to before it took the account. Then each location takes the
// other one for the primary, and nobody serves it.
func WithoutPrimary(records map[geo.Location]Account) (why string, latest Account) {
	var at geo.Location
	for l, a := range records {
		if latest.Name == "" || geo.Epoch(a.Epoch).Compare(geo.Epoch(latest.Epoch)) > 0 {
			at, latest = l, a
		}
	}
	own, answered := records[latest.Primary]
	if !answered || at == latest.Primary || own.Primary == latest.Primary || geo.Epoch(own.Epoch).Compare(geo.Epoch(latest.Epoch)) >= 0 {
		return "", latest
	}
	why = fmt.Sprintf("no location takes its writes: %s has %s as its primary, in epoch %s, and %s was set back to before it took the account, "+
		"to epoch %s, where the primary is %s", at, latest.Primary, latest.Epoch, latest.Primary, own.Epoch, own.Primary)
	if latest.Secondary == at {
		why += fmt.Sprintf("; antipodectl failover unplanned %s --yes makes %s the primary: docs/runbooks/account-without-primary.md", latest.Name, at)
	}
	return why, latest
}
