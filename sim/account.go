package sim

import (
	"time"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/queues"
)

// accountPlan are the accounts, two of them with one primary: each location is
// primary for some and secondary for others.
var accountPlan = [...]struct { //nolint:gochecknoglobals // A table.
	name geo.Account
	home int
}{{"alpha", 0}, {"bravo", 0}, {"charlie", 1}}

// account is an account and its containers so far.
type account struct {
	name  geo.Account
	epoch geo.Epoch
	// home is where its primary is: the location whose catalog has taken it last. moved counts how often one did, taken
	// are the epochs in which it did.
	home       *location
	moved      int
	taken      map[geo.Epoch]bool
	containers map[geo.Service][]*container
	// synced is what the other location showed of each service.
	synced map[geo.Service]*synced
	// doubted means that an operator ends its move once it is offered.
	doubted bool
	// record is the account's in the catalog of home, as of its last change.
	record *catalog.Account
	// incomplete means that the other location has no whole copy, wholeFrom from which index of each range on a
	// replica there has it. mended means that an operator makes it again.
	incomplete, mended bool
	wholeFrom          map[geo.RangeID]uint64
	// fork is what the newest failover left at the former primary, nil if that was asked; forks counts those that were not.
	// strays are containers that the present primary does not know. promoting is the phase of a promotion at the secondary.
	fork   *fork
	forks  int
	strays []*container
	// diverged are the locations that were its former primary and had what the present one had not.
	promoting catalog.PromotionPhase
	// claim is the epoch that the newest promotion has claimed at the witness, zero if that is not asked.
	claim    geo.Epoch
	diverged map[geo.Location]bool
	// got are messages that clients have got, hidden are when and for how long.
	got    []gotten
	hidden map[queues.MessageID]hidden
	// fresh is the write of an object that was acknowledged last, nil before the first.
	fresh *op
}

// synced is what clients saw of the Last Sync Time of a service.
type synced struct {
	// lastSync is the greatest that the other location showed in the epoch of the account.
	lastSync geo.Timestamp
	epoch    geo.Epoch
	// before is the greatest that was shown under former primaries.
	before geo.Timestamp
	// live means that it showed one when it was asked last.
	live bool
	// asking means that a question for it is open, asked since when.
	asking bool
	asked  time.Duration
	// checked is up to where the payload of each stream was looked for there.
	checked map[geo.Stream]geo.Seq
}

func newAccount(name geo.Account, home *location) *account {
	a := &account{name: name, home: home, containers: map[geo.Service][]*container{}, synced: map[geo.Service]*synced{}, wholeFrom: map[geo.RangeID]uint64{}, taken: map[geo.Epoch]bool{}, diverged: map[geo.Location]bool{}, hidden: map[queues.MessageID]hidden{}}
	for _, svc := range home.s.used {
		a.synced[svc] = &synced{checked: map[geo.Stream]geo.Seq{}}
	}
	return a
}

// lastSync is the greatest Last Sync Time that covers changes of a service. The
// catalog's count for all services.
func (a *account) lastSync(svc geo.Service) geo.Timestamp {
	if svc != geo.Catalog {
		return max(a.synced[svc].lastSync, a.synced[svc].before)
	}
	var newest geo.Timestamp
	for _, other := range a.home.s.used {
		newest = max(newest, a.lastSync(other))
	}
	return newest
}

func (s *Sim) account(name geo.Account) *account {
	for _, a := range s.accounts {
		if a.name == name {
			return a
		}
	}
	return nil
}
