package operator

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
)

// claimPoll is after how long a process looks again whether another one goes on with the same clone.
const claimPoll = 20 * time.Millisecond

// cloneClaims are the accounts of which this process is having a clone opened, here or at another process. An account has one
// clone in a location, by the rule of the bakery: a process claims the account, and then asks all others. It gives up where
// one has claimed the account and has asked already, or has a lower number; it waits for one with a higher number, which
// gives up or has asked before the claim. So of two that claim at once each sees the other, or the one that was first is sure
// of it when the second one asks. Where that does not see the first one's claim any more, the clone is open, perhaps in a third
// process: so all are asked for clones behind, and not with the same question.
//
// A process that does not answer is passed over: one that comes back after less than the time that a clone takes to open may
// have opened a second one, which dropMembersClone drops with the first.
//
// Methods may be called concurrently.
type cloneClaims struct {
	mu sync.Mutex
	// of is whether the process is sure that no other one opens the clone. Guarded by mu.
	of map[geo.Account]bool
}

// begin claims an account, unless it is claimed here.
func (c *cloneClaims) begin(name geo.Account) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, is := c.of[name]; is {
		return false
	}
	if c.of == nil {
		c.of = map[geo.Account]bool{}
	}
	c.of[name] = false
	return true
}

// sure marks that all others were asked.
func (c *cloneClaims) sure(name geo.Account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[name] = true
}

func (c *cloneClaims) end(name geo.Account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, name)
}

func (c *cloneClaims) all() map[geo.Account]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.of)
}

// claimClone claims the clone of an account, which m.claims.end must follow, or returns why no clone may be opened.
func (m *Members) claimClone(ctx context.Context, name geo.Account) (err error) {
	if !m.claims.begin(name) {
		return beingOpened(name, wire.NodeName(m.Name(), m.o.Self))
	}
	defer func() {
		if err != nil {
			m.claims.end(name)
		}
	}()
	for {
		others := false
		for _, a := range m.askClones(ctx) {
			sure, claimed := a.Opening[name]
			if claimed && (sure || a.Node < m.o.Self) {
				return beingOpened(name, wire.NodeName(m.Name(), a.Node))
			}
			others = others || claimed
		}
		if !others {
			m.claims.sure(name)
			return m.checkNoClone(ctx, name)
		}
		if err := clock.Wait(ctx, claimPoll); err != nil {
			return err
		}
	}
}

// checkNoClone returns an error unless no process that answers has a clone of the account.
func (m *Members) checkNoClone(ctx context.Context, name geo.Account) error {
	switch c, err := ask(ctx, Location(m), &showClone, wire.At{Account: name}, wire.None{}); {
	case err == nil:
		return hasClone(c)
	case !noClone(err):
		return err
	}
	return nil
}

func hasClone(c wire.Clone) error {
	return &wire.Error{Status: http.StatusConflict, Code: wire.CodeCloneRefused, Message: fmt.Sprintf(
		"account %s has a clone already, on %s: drop that first (antipodectl drill %s --clone --drop)", c.Account, c.Node, c.Account)}
}

func beingOpened(name geo.Account, node string) error {
	return &wire.Error{Status: http.StatusConflict, Code: wire.CodeCloneRefused, Message: fmt.Sprintf(
		"a clone of account %s is being opened by another call, at %s: antipodectl drill %s --clone --show shows it once it is open", name, node, name)}
}
