package primary

import (
	"context"
	"sync"
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

// ErrSlowed is returned while as many writes are delayed as may be.
var ErrSlowed = storageerr.ServerBusy.Saying("Changes of the account have not reached its secondary location in time, and its writes are slowed: too many of them wait. Please retry your request.")

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
	full := !late.Refuse && !p.slowed.begin(at.Account)
	switch now.held(late.Refuse || full); {
	case late.Refuse:
		return ErrLate
	case full:
		return ErrSlowed
	}
	defer p.slowed.end(at.Account)
	timer := time.NewTimer(late.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return kv.ErrBusy
	}
}

// A write that is delayed keeps the place of its request, and its body, for as long. One that would be more than an
// account, or all accounts together, may have is refused: two slowed accounts would have all places of a front end.
const (
	slowedAccountMax = 256
	slowedMax        = 1024
)

// slowed counts the writes that are delayed. The zero value has none. Methods may be called concurrently.
type slowed struct {
	mu  sync.Mutex
	all int
	of  map[geo.Account]int // those with such writes
}

// begin takes a place of an account, and reports whether there was one; end must follow.
func (s *slowed) begin(a geo.Account) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= slowedMax || s.of[a] >= slowedAccountMax {
		return false
	}
	if s.of == nil {
		s.of = map[geo.Account]int{}
	}
	s.all++
	s.of[a]++
	return true
}

func (s *slowed) end(a geo.Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[a]--; s.of[a] == 0 {
		delete(s.of, a)
	}
}
