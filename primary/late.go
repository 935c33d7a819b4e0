package primary

import (
	"context"
	"time"

	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Late is what becomes of the writes of an account to a service while its changes do not reach the secondary within
// the RPO target, and the account does not go on as if they did.
type Late struct {
	// Refuse refuses them; else each is delayed by Delay.
	Refuse bool
	Delay  time.Duration
}

// Written is what writes go to: a service of an account. The service may be the catalog, which has the containers.
type Written struct {
	Account geo.Account
	Service geo.Service
}

// ErrLate is returned while the account refuses writes because of its late changes.
var ErrLate = storageerr.ServerBusy.Saying("Changes of the account have not reached its secondary location in time, and it takes no writes until they have. Please retry your request.")

// SetLate replaces what is late; the map is not changed afterwards. held is called for each write that is refused or
// delayed, possibly concurrently.
func (p *Primary) SetLate(late map[Written]Late, held func(refused bool)) {
	p.late.Store(&lateness{of: late, held: held})
}

type lateness struct {
	of   map[Written]Late
	held func(refused bool)
}

// admit delays or refuses a write of a late account. After an error nothing happened.
func (p *Primary) admit(ctx context.Context, at keys.Partition) error {
	now := p.late.Load()
	if now == nil {
		return nil
	}
	late, ok := now.of[Written{at.Account, at.Service}]
	if !ok {
		return nil
	}
	now.held(late.Refuse)
	if late.Refuse {
		return ErrLate
	}
	timer := time.NewTimer(late.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return kv.ErrBusy
	}
}
