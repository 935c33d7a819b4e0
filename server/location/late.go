package location

import (
	"time"

	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// Kinds of events about changes that take longer than the RPO target to arrive at the secondary.
const (
	// ChangesLate: the oldest change of the service that the secondary has not acknowledged is older than the
	// target.
	ChangesLate node.EventKind = "late"
	// ChangesArrived: no change of it is any more.
	ChangesArrived node.EventKind = "arrived"
)

const (
	// rpoTarget is the zero value of Options.RPOTarget.
	rpoTarget = 15 * time.Minute
	// lateEvery is how often the outboxes are looked at, at least. An episode shows from its second
	// sample on.
	lateEvery = 5 * time.Second
)

// lateEvery is how often the outboxes are looked at: a hundred times within the target, in these bounds.
func (o Options) lateEvery() time.Duration {
	return min(lateEvery, max(watchEvery, o.RPOTarget/100))
}

// lateReason is the reason in an event of ChangesLate.
func (l *Location) lateReason(a *catalog.Account) string {
	out := "changes are not at " + string(l.o.Other) + " after " + l.o.RPOTarget.String()
	switch a.WhenLate {
	case catalog.LateSlow:
		out += "; writes are slowed"
	case catalog.LateRefuse:
		out += "; writes are refused"
	case catalog.LateAlert:
	}
	return out
}

// sampleLate looks at the outboxes of the ranges that this process leads. It is the source that knows,
// also while the link is cut. The service of an event is that of the range: it may be the catalog. A
// process that begins to lead a range reports the episodes that last, and until it has looked its writes are not held.
func (w *watching) sampleLate() {
	now, target := w.l.o.Clock.Now(), w.l.o.RPOTarget
	found, held := map[serviceKey]string{}, map[primary.Written]primary.Late{}
	for _, d := range w.l.o.Route.Ranges() {
		lead := w.l.Leader(d.ID)
		if lead == nil {
			continue
		}
		oldest, err := oldestChanges(lead.Machine, now.Add(-target/2))
		if err != nil {
			w.l.o.Logger.Error("cannot read the backlog", "location", w.l.o.Name, "range", d.ID, "error", err)
			return // Nothing is known of what is late, so nothing has arrived.
		}
		fell := fallenOut(lead.Machine)
		for _, a := range w.accounts {
			if a.Primary != w.l.o.Name {
				continue
			}
			k, age := serviceKey{a.Name, d.Service}, time.Duration(0)
			if at, waits := oldestOf(a, oldest); waits {
				age = now.Sub(at.Time())
			}
			if found[k] == "" {
				found[k] = ""
				if age > target {
					found[k] = w.l.lateReason(a)
				}
			}
			if fell[a.Name] {
				age = max(age, 2*target)
			}
			hold(held, a, d.Service, age, target)
		}
	}
	w.l.Primary.SetLate(held, w.l.o.OnHeld)
	for _, e := range w.late.step(found) {
		w.l.report(e)
	}
}

// slowMax is the most that a write of an account that slows its writes is delayed.
const slowMax = 2 * time.Second

// hold adds what becomes of the writes of an account to a service whose oldest change that the secondary has not
// acknowledged has an age.
//
// Writes are slowed from half of the target on, by a second at the target and by slowMax at most: while the link takes
// less than the clients write, they end up where both are equal, before the target.
func hold(held map[primary.Written]primary.Late, a *catalog.Account, s geo.Service, age, target time.Duration) {
	at := primary.Written{Account: a.Name, Service: s}
	switch {
	case a.WhenLate == catalog.LateRefuse && age > target:
		held[at] = primary.Late{Refuse: true}
	case a.WhenLate == catalog.LateSlow && age > target/2:
		delay := min(slowMax, time.Duration(float64(age-target/2)/float64(target/2)*float64(time.Second)))
		held[at] = primary.Late{Delay: max(delay, held[at].Delay)}
	}
}

// oldestOf returns when the oldest change of an account was committed that the secondary does not have, of those in an
// outbox. A bootstrap whose copy has not begun has none there: all changes since its epoch began wait.
func oldestOf(a *catalog.Account, outbox map[geo.Account]geo.Timestamp) (at geo.Timestamp, waits bool) {
	if a.Bootstraps() && !a.Copying() {
		return a.Operation.After, true
	}
	at, waits = outbox[a.Name]
	return at, waits
}

// oldestChanges returns, of the accounts with a change in the outbox of a range that was committed before a time, when
// the oldest was. Without one it reads no more than the range's backlog.
func oldestChanges(m *ranges.Machine, before time.Time) (map[geo.Account]geo.Timestamp, error) {
	b, err := m.Backlog()
	if err != nil || b.Oldest == 0 || !b.Oldest.Time().Before(before) {
		return nil, err
	}
	copies, err := m.Oldest()
	if err != nil {
		return nil, err
	}
	out := map[geo.Account]geo.Timestamp{}
	for c, at := range copies {
		if former, ok := out[c.Account]; at.Time().Before(before) && (!ok || at < former) {
			out[c.Account] = at
		}
	}
	return out, nil
}

// fallenOut returns the accounts that fell out of the outbox's budget at a range (R18): the secondary does not get their
// changes, however long they wait.
func fallenOut(m *ranges.Machine) map[geo.Account]bool {
	out := map[geo.Account]bool{}
	for _, h := range m.Holdings() {
		out[h.Account] = h.FellOut
	}
	return out
}
