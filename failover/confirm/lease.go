package confirm

import (
	"maps"
	"time"

	"antipode/geo"
)

// A lease is held for leaseNumerator/leaseDenominator of its life, counted from before the question was sent: see the
// clocks of package witness. renewals is how often it is renewed within its life.
const (
	leaseNumerator, leaseDenominator = 4, 5
	renewals                         = 5
)

// renewed takes the answer of the witness. The claims come first: the lease does not hold for their accounts.
func (m *Machine) renewed(now time.Duration, e Renewed) (out []Effect) {
	began, g := m.renewal.began, e.Grant
	m.renewal.open = false
	m.state.Unwitnessed = e.Err
	if e.Err != nil {
		m.renewDue = now + m.o.Retry
		return nil
	}
	if g.Incarnation != m.incarnation && m.incarnation != "" {
		// It counts its claims from the beginning: those up to the version that was named may be missing in the answer. What is known
		// of claims stays.
		m.incarnation, m.version, m.renewDue = g.Incarnation, 0, now
		return nil
	}
	claims := Epochs{}
	for _, c := range g.Claims {
		claims[c.Account] = c.Epoch()
	}
	if g.All && m.version > 0 { // Of another incarnation it may be those of a file that lost some.
		clear(m.claims)
	}
	m.withdraw(g.Withdrawn)
	m.know(m.claims, claims)
	m.incarnation, m.version, m.renewDue = g.Incarnation, g.Version, began+g.Life/renewals
	until := began + g.Life/leaseDenominator*leaseNumerator
	if until <= now {
		return nil // The process stood still meanwhile, or the call took that long.
	}
	m.lease = max(m.lease, until)
	if m.state.Source != ByWitness {
		out = append(out, m.hold(now, ByWitness))
	}
	return out
}

// withdraw forgets claims that can never take effect any more.
func (m *Machine) withdraw(accounts []geo.Account) {
	for _, a := range accounts {
		delete(m.claims, a)
	}
}

// Claims returns the claims that the witness is known to have.
func (m *Machine) Claims() Epochs { return maps.Clone(m.claims) }
