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
// them (R22): see Repair. It ends after the command that reaches bytesMax bytes of rows and payload, if that is not 0; done is
// how many of the rows were numbered. kv.ErrBusy: the range does not ship the account in the epoch, or its node lacks payload
// of a row.
func (p *Primary) Rewind(ctx context.Context, d route.Range, a geo.Account, e geo.Epoch, keys [][]byte, bytesMax uint64) (done int, bytes uint64, err error) {
	for done < len(keys) && (bytesMax == 0 || bytes < bytesMax) {
		r := &Repair{Account: a, Service: d.Service, Epoch: e, Keys: keys[done:min(len(keys), done+RepairRowsMax)]}
		outcomes, took, err := p.Repair(ctx, d.ID, r)
		if bytes += took; err != nil {
			return done, bytes, err
		}
		n := slices.Index(outcomes, RepairLater)
		if n < 0 {
			n = len(outcomes)
		}
		for i, o := range outcomes[:n] {
			switch o {
			case RepairSet, RepairDeleted, RepairGone:
			case RepairUnreadable:
				return done, bytes, fmt.Errorf("row %x cannot be decoded here", keys[done+i])
			case RepairLater, RepairNoPayload, RepairRefused, RepairSettling:
				return done, bytes, kv.ErrBusy
			}
		}
		done += n
	}
	return done, bytes, nil
}
