package primary

import (
	"context"
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/stamp/kv"
	"antipode/stamp/route"
)

// Rewind numbers rows of an account once more, as they are here, for a former primary on which lost changes have changed
// them (R22): see Repair. kv.ErrBusy: the range does not ship the account in the epoch, or its node lacks payload of a row.
func (p *Primary) Rewind(ctx context.Context, d route.Range, a geo.Account, e geo.Epoch, keys [][]byte) (bytes uint64, err error) {
	for len(keys) > 0 {
		r := &Repair{Account: a, Service: d.Service, Epoch: e, Keys: keys[:min(len(keys), RepairRowsMax)]}
		outcomes, took, err := p.Repair(ctx, d.ID, r)
		if bytes += took; err != nil {
			return bytes, err
		}
		n := slices.Index(outcomes, RepairLater)
		if n < 0 {
			n = len(outcomes)
		}
		for i, o := range outcomes[:n] {
			switch o {
			case RepairSet, RepairDeleted, RepairGone:
			case RepairUnreadable:
				return bytes, fmt.Errorf("row %x cannot be decoded here", keys[i])
			case RepairLater, RepairNoPayload, RepairRefused, RepairSettling:
				return bytes, kv.ErrBusy
			}
		}
		keys = keys[n:]
	}
	return bytes, nil
}
