package api

import (
	"sync"

	"antipode/geo"
	"antipode/services/storageerr"
)

// requestsMax is how many requests a service of a front end works on at once, if Options
// say nothing: each costs some tens of KiB beside what its body and answer hold.
const requestsMax = 4096

// accountParts: an account has the accountParts-th part of a gate at most.
const accountParts = 4

// Operations that count requests which were refused for their number.
const (
	opTooMany          = "TooManyRequests"
	opTooManyOfAccount = "TooManyRequestsOfAccount"
)

// gate bounds the requests under way at one listener, and a quarter as many of one account: what one account sends, or
// two, must not keep the others out of half of it. Its methods may be called concurrently.
type gate struct {
	max int

	mu       sync.Mutex
	running  int
	accounts map[geo.Account]int // those with requests under way
}

func newGate(limit int) *gate { return &gate{max: limit, accounts: map[geo.Account]int{}} }

// enter admits a request; leave must follow.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running >= g.max {
		return false
	}
	g.running++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
}

// enterAccount admits a request that was shown to be the account's; leaveAccount must
// follow. Before that a stranger could use up the account's part.
func (g *gate) enterAccount(a geo.Account) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accounts[a] >= max(1, g.max/accountParts) {
		return false
	}
	g.accounts[a]++
	return true
}

func (g *gate) leaveAccount(a geo.Account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accounts[a]--; g.accounts[a] == 0 {
		delete(g.accounts, a)
	}
}

// ofAccount does what a request asks for as one of its account's, unless those are too many.
func (x *exchange) ofAccount(do func() error) error {
	if err := x.enterAccount(); err != nil {
		return err
	}
	defer x.leaveAccount()
	return do()
}

// enterAccount counts a request that was shown to be its account's as one of those under way, once: one that waits for a
// failover is served meanwhile. leaveAccount must follow, unless there is an error. A gateway has no keys, and counts by the
// name alone: a stranger takes an account's part there with as many requests as one, each for as long as a location takes to
// refuse it.
func (x *exchange) enterAccount() error {
	if x.entered == 0 && !x.gate.enterAccount(x.req.Target.Account) {
		x.op = opTooManyOfAccount
		return errTooMany
	}
	x.entered++
	return nil
}

func (x *exchange) leaveAccount() {
	if x.entered--; x.entered == 0 {
		x.gate.leaveAccount(x.req.Target.Account)
	}
}

// errTooMany: nothing happened.
var errTooMany = storageerr.ServerBusy.Saying("The server works on as many requests as it can. Please retry your request.")
