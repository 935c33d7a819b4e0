package location

import (
	"fmt"
	"time"

	"antipode/geo"
	"antipode/replication/ship"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// Kinds of events about the budget of the outbox (R18).
const (
	// AccountFellOut: the primary deleted changes of the service that the secondary had not acknowledged. The
	// secondary stays as it is, and has to be rebuilt.
	AccountFellOut node.EventKind = "fell-out"
	// AccountFollows: the account has another copy, to which its changes are shipped.
	AccountFollows node.EventKind = "follows"
)

const (
	// outboxAge is the zero value of OutboxBudget.Age: an outage over a weekend.
	outboxAge = 72 * time.Hour
	// outboxShare is which part of a node's disk its outboxes may have, where OutboxBudget has no Bytes, and
	// outboxBytes how much if the size of the disk is not known.
	outboxShare = 4
	outboxBytes = 64 << 30
)

// OutboxBudget bounds what the outboxes of each node hold while the other location does not acknowledge: see
// ship.Budget. A low one costs a rebuild of a secondary after a short outage; a high one disk.
type OutboxBudget struct {
	// Bytes are those of changes and of the payload that they name. Zero means a quarter of the disk, which the
	// nodes of this process share.
	Bytes uint64
	// AccountBytes bounds those of each account. Zero means that Bytes alone does.
	AccountBytes uint64
	// Age is how old a change may be that waits. Zero means 72 h.
	Age time.Duration
}

// budget returns the budget of a node's outboxes.
func (l *Location) budget(n *node.Node) ship.Budget {
	o := l.o.Outbox
	b := ship.Budget{Bytes: int64(o.Bytes), AccountBytes: int64(o.AccountBytes), Age: o.Age}
	if b.Bytes == 0 {
		b.Bytes = outboxBytes
		if disk, _, _ := n.Room().Disk(); disk > 0 {
			b.Bytes = int64(disk) / outboxShare / int64(len(l.o.Local))
		}
	}
	if b.Age == 0 {
		b.Age = outboxAge
	}
	var all []*ranges.Range
	for _, id := range l.o.Route.IDs() {
		if r := n.Range(id); r != nil {
			all = append(all, r)
		}
	}
	b.Ranges = func() []*ranges.Range { return all }
	return b
}

// fellOutReason is the reason in an event of AccountFellOut.
func (l *Location) fellOutReason(a geo.Account) string {
	return fmt.Sprintf("the outbox passed its budget: %s stays as it is and gets no more changes; antipodectl account rebuild %s", l.o.Other, a)
}

// sampleFellOut looks which accounts fell out of the outbox's budget, at the ranges that this process leads. A
// process that begins to lead a range reports those that fell out before.
func (w *watching) sampleFellOut() {
	found := map[serviceKey]string{}
	for _, d := range w.l.o.Route.Ranges() {
		lead := w.l.Leader(d.ID)
		if lead == nil {
			continue
		}
		fell := fallenOut(lead.Machine)
		for _, a := range w.accounts {
			if k := (serviceKey{a.Name, d.Service}); a.Primary == w.l.o.Name && found[k] == "" {
				found[k] = ""
				if fell[a.Name] {
					found[k] = w.l.fellOutReason(a.Name)
				}
			}
		}
	}
	for _, e := range w.fellOut.step(found) {
		w.l.report(e)
	}
}
