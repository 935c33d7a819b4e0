package location

import (
	"time"

	"antipode/geo"
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
func (l *Location) lateReason() string {
	return "changes are not at " + string(l.o.Other) + " after " + l.o.RPOTarget.String()
}

// sampleLate looks at the outboxes of the ranges that this process leads. It is the source that knows,
// also while the link is cut. The service of an event is that of the range: it may be the catalog. A
// process that begins to lead a range reports the episodes that last.
func (w *watching) sampleLate() {
	now := w.l.o.Clock.Now()
	found := map[serviceKey]string{}
	for _, d := range w.l.o.Route.Ranges() {
		lead := w.l.Leader(d.ID)
		if lead == nil {
			continue
		}
		late, err := lateAccounts(lead.Machine, now.Add(-w.l.o.RPOTarget))
		if err != nil {
			w.l.o.Logger.Error("cannot read the backlog", "location", w.l.o.Name, "range", d.ID, "error", err)
			return // Nothing is known of what is late, so nothing has arrived.
		}
		for _, a := range w.accounts {
			if k := (serviceKey{a.Name, d.Service}); a.Primary == w.l.o.Name && found[k] == "" {
				found[k] = ""
				if late[a.Name] {
					found[k] = w.l.lateReason()
				}
			}
		}
	}
	for _, e := range w.late.step(found) {
		w.l.report(e)
	}
}

// lateAccounts returns the accounts with a change in the outbox of a range that was committed before a
// time. Without one it reads no more than the range's backlog.
func lateAccounts(m *ranges.Machine, before time.Time) (map[geo.Account]bool, error) {
	b, err := m.Backlog()
	if err != nil || b.Oldest == 0 || !b.Oldest.Time().Before(before) {
		return nil, err
	}
	out := map[geo.Account]bool{}
	heads, _ := m.Heads()
	for st, head := range heads {
		n := m.Trimmed(st)
		if out[st.Account] || n >= head.Seq {
			continue
		}
		records, err := m.Outbox(st, n+1, 1)
		if err != nil {
			return nil, err
		}
		if len(records) == 0 {
			continue // It was trimmed meanwhile.
		}
		h, err := change.ParseHeader(records[0])
		if err != nil {
			continue // Its stream stops, with an alarm.
		}
		out[st.Account] = h.CommitTime.Time().Before(before)
	}
	return out, nil
}
