package location

import (
	"time"

	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
	"antipode/stamp/change"
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

// lateOutbox is what the outbox of one range shows.
type lateOutbox struct {
	service geo.Service
	// oldest are the accounts with a change that is at least half as old as the target, and when the oldest was
	// committed; apart are those whose changes do not arrive, however long they wait.
	oldest map[geo.Account]geo.Timestamp
	apart  map[geo.Account]bool
	// err: it cannot be read now.
	err error
}

// lately is what the last look at the outboxes has shown. The zero value has none.
type lately struct {
	found map[serviceKey]string
	hold  map[primary.Written]primary.Late
}

// sampleLate looks at the outboxes of the ranges that this process leads. It is the source that knows,
// also while the link is cut. The service of an event is that of the range: it may be the catalog. A
// process that begins to lead a range reports the episodes that last, and until it has looked twice its writes are
// not held.
func (w *watching) sampleLate() {
	now, target := w.l.o.Clock.Now(), w.l.o.RPOTarget
	var list []lateOutbox
	for _, d := range w.l.o.Route.Ranges() {
		lead := w.l.Leader(d.ID)
		if lead == nil {
			continue
		}
		o := lateOutbox{service: d.Service, apart: apart(lead.Machine)}
		if o.oldest, o.err = oldestChanges(lead.Machine, now.Add(-target/2)); o.err != nil {
			w.l.o.Logger.Error("cannot read the backlog", "location", w.l.o.Name, "range", d.ID, "error", o.err)
		}
		list = append(list, o)
	}
	w.takeLate(list, now)
}

// takeLate takes what a look at the outboxes has shown.
func (w *watching) takeLate(list []lateOutbox, now time.Time) {
	was := w.lately
	w.lately = w.l.lateNow(w.accounts, list, was, now)
	w.l.Primary.SetLate(twice(was.hold, w.lately.hold), w.l.o.OnHeld)
	for _, e := range w.late.step(w.lately.found) {
		w.l.report(e)
	}
}

// lateNow is what outboxes show. Of the service of one that cannot be read it is what was known before: nothing has
// arrived, and other services go on.
func (l *Location) lateNow(accounts []*catalog.Account, list []lateOutbox, was lately, now time.Time) lately {
	out := lately{map[serviceKey]string{}, map[primary.Written]primary.Late{}}
	unread := map[geo.Service]bool{}
	for _, o := range list {
		unread[o.service] = unread[o.service] || o.err != nil
	}
	for _, o := range list {
		for _, a := range accounts {
			if a.Primary != l.o.Name {
				continue
			}
			if unread[o.service] {
				out.keep(was, serviceKey{a.Name, o.service})
			} else {
				out.take(l, a, o, now)
			}
		}
	}
	return out
}

// keep takes over what was known of a service of an account.
func (v lately) keep(was lately, k serviceKey) {
	if reason, known := was.found[k]; known {
		v.found[k] = reason
	}
	at := primary.Written{Account: k.account, Service: k.service}
	if late, known := was.hold[at]; known {
		v.hold[at] = late
	}
}

// take adds what an outbox shows of an account.
func (v lately) take(l *Location, a *catalog.Account, o lateOutbox, now time.Time) {
	k, age := serviceKey{a.Name, o.service}, time.Duration(0)
	if at, waits := oldestOf(a, o.oldest); waits {
		age = now.Sub(at.Time())
	}
	if v.found[k] == "" {
		v.found[k] = ""
		if age > l.o.RPOTarget {
			v.found[k] = l.lateReason(a)
		}
	}
	if o.apart[a.Name] {
		age = max(age, 2*l.o.RPOTarget)
	}
	hold(v.hold, a, o.service, age, l.o.RPOTarget)
}

// twice returns what holds writes after two looks. What one alone shows holds none: after a clock has jumped ahead
// every change that is under way is old for a moment.
func twice(before, now map[primary.Written]primary.Late) map[primary.Written]primary.Late {
	out := map[primary.Written]primary.Late{}
	for at, late := range now {
		if _, did := before[at]; did {
			out[at] = late
		}
	}
	return out
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

// apart returns the accounts whose copy a range cannot bring on: those that fell out, until they are rebuilt, and those
// with a forked stream, until an operator has picked a side (R16): what is written to one meanwhile is undone where
// that is the secondary's.
func apart(m *ranges.Machine) map[geo.Account]bool {
	out := fallenOut(m)
	for s, why := range m.Stops() {
		if g := m.Gate(s.Account); why.Reason == change.StopForked && g.Role == change.RolePrimary && g.Epoch == s.Epoch {
			out[s.Account] = true
		}
	}
	return out
}
