package bootstrap

import (
	"maps"
	"sync"
	"time"

	"antipode/geo"
	"antipode/services/catalog"
)

// An account's copy takes at most as many bytes per second as its operation says, rows and the payload that they
// name together. The rate is in the account's record, and so outlives the process; it is looked at before every
// step. What was copied lately is in memory: another process may begin with one step more.

// paceCredit is how much of a time without steps counts for later ones.
const paceCredit = 250 * time.Millisecond

// stepLeast is the least that bounds a step of an image, in bytes.
const stepLeast = 4 << 10

// paces keep the bootstraps to their rates. The zero value has none. Methods may be called concurrently.
type paces struct {
	mu sync.Mutex
	of map[geo.Account]*pace // guarded by mu
}

// pace is what a bootstrap has copied beyond its rate.
type pace struct {
	epoch geo.Epoch
	at    time.Duration // on the monotonic clock
	// debt is in bytes as of at; below zero it is credit.
	debt float64
}

// wait returns after what time the account's copy may make its next step, 0 for now.
func (p *paces) wait(a catalog.Account, now time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	rate := float64(a.Operation.Rate)
	have := p.of[a.Name]
	if rate == 0 || have == nil || have.epoch != a.GeoEpoch() {
		delete(p.of, a.Name)
		return 0
	}
	have.debt = max(have.debt-rate*(now-have.at).Seconds(), -rate*paceCredit.Seconds())
	if have.at = now; have.debt <= 0 {
		return 0
	}
	// A rate may be raised meanwhile: nobody waits longer than the next look.
	return time.Duration(min(have.debt/rate, bootstrapRests.Seconds())*float64(time.Second)) + 1
}

// took adds what a step has copied.
func (p *paces) took(a catalog.Account, now time.Duration, bytes uint64) {
	if a.Operation.Rate == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[geo.Account]*pace{}
	}
	have := p.of[a.Name]
	if have == nil || have.epoch != a.GeoEpoch() {
		have = &pace{epoch: a.GeoEpoch(), at: now}
		p.of[a.Name] = have
	}
	have.debt += float64(bytes)
}

// keep forgets the accounts that are not in names.
func (p *paces) keep(names map[geo.Account]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.of, func(name geo.Account, _ *pace) bool { return !names[name] })
}

// stepMax bounds a step at a rate: what it lets through in a tenth of a second. 0 is no bound.
func stepMax(rate uint64) uint64 {
	if rate == 0 {
		return 0
	}
	return max(rate/10, stepLeast)
}
