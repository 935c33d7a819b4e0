package unplanned

import (
	"context"
	"errors"
	"maps"
	"slices"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// releasesMax bounds the claims that one call of ReleaseClaims withdraws.
const releasesMax = 100

// ReleaseClaims withdraws those of the claims of this location, of all that the witness is known to have, that are over:
// their promotion has ended, and the other location knows of the claimed epoch, or that can never begin any more. So the
// witness keeps no more claims than there are promotions of which a former primary does not know. It may be repeated.
func (u *Promoter) ReleaseClaims(ctx context.Context, have map[geo.Account]geo.Epoch) error {
	own := maps.Clone(have)
	maps.DeleteFunc(own, func(_ geo.Account, e geo.Epoch) bool { return e.Location != u.stamp.Location() })
	if u.claims == nil || len(own) == 0 {
		return nil
	}
	var spent []geo.Account
	err := u.stamp.Read(ctx, u.stamp.Route().Catalog(), func(s ranges.State) error {
		spent = nil
		for _, name := range slices.Sorted(maps.Keys(own)) {
			over, err := claimOver(s, name, own[name])
			if err != nil {
				return err
			}
			if over {
				spent = append(spent, name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range spent[:min(len(spent), releasesMax)] {
		if err := u.claims.Withdraw(ctx, name, own[name].Number); err != nil {
			return err
		}
	}
	return nil
}

// claimOver reports whether a claim of this location is over, by its catalog. A claim of a later promotion is above the
// epochs that were seen.
func claimOver(s ranges.State, name geo.Account, claim geo.Epoch) (bool, error) {
	p, err := catalog.GetPromotion(s, name)
	if err != nil || p != nil {
		return false, err
	}
	a, err := catalog.GetAccount(s, name)
	if errors.Is(err, storageerr.AccountNotFound) { // The catalog may have lost it.
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if a.Primary != claim.Location {
		seen, err := catalog.SeenEpoch(s, name)
		return record.Later(seen, a.GeoEpoch()).Compare(claim) >= 0, err
	}
	taken := a.Operation != nil && a.Operation.Kind == catalog.OperationTaken
	return !taken && a.GeoEpoch().Compare(claim) >= 0, nil
}
