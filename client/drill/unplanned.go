package drill

import (
	"fmt"
	"time"

	"antipode/client/admin"
	"antipode/geo"
)

// LostWrite is a write of the drill that was acknowledged and is gone.
type LostWrite struct {
	Row   int    `json:"row"`
	Value uint64 `json:"value"`
	// Began and Acked are when its client sent it, and when the client had read the answer.
	Began time.Duration `json:"began_ns"`
	Acked time.Duration `json:"acked_ns"`
	// Listed is how surely it was answered in the words of the lost-change report, and Committed its time there; absent if
	// the report does not have it.
	Listed    string     `json:"listed,omitempty"`
	Committed admin.Time `json:"committed,omitzero"`
}

// Unplanned is what a drill has found about an unplanned failover. The fields from Killed on are for the caller to fill in.
type Unplanned struct {
	// From is when the primary was stopped, or where it was not, when the failover was asked for.
	From time.Duration `json:"from_ns"`
	// RTO is the time from From until a client had read the acknowledgement of the first write that the new primary took.
	// Absent if there was none.
	RTO *time.Duration `json:"rto_ns,omitempty"`
	// RPO is the span of the loss: from the acknowledgement of the oldest lost write to From, or to that of the newest one if
	// that came later. 0 if nothing of the drill was lost.
	RPO time.Duration `json:"rpo_ns"`

	// Killed is how the primary was stopped, empty if it was not.
	Killed string `json:"killed,omitempty"`
	// DeadAfter is how long after the command that stops it had returned no node of the primary answered any more; absent
	// where that was not looked at, or did not come.
	DeadAfter *time.Duration `json:"dead_after_ns,omitempty"`
	// Lived is set where the primary still answered when the failover was asked for, although it was to be stopped.
	Lived bool `json:"lived,omitempty"`
	// Followed is set once the former primary was the secondary, and Rebuilt where its copy had to be made again for that.
	Followed bool `json:"followed"`
	Rebuilt  bool `json:"rebuilt,omitempty"`
	// Stated is what the failover said of each service, Claims what the former primary claims about its lost changes.
	Stated []admin.ServiceLoss `json:"stated"`
	Claims []admin.LostClaim   `json:"claims"`
	// Compared is set once the lost-change report was read.
	Compared bool `json:"compared"`
	// Listed is how many changes of the drill the lost-change report has, those that nobody had an answer of included.
	Listed int `json:"listed"`
	// Unlisted are lost writes that the report does not have, and Promised those that the report has as committed at or below
	// the Last Sync Time that the failover stated: neither may be.
	Unlisted int `json:"unlisted"`
	Promised int `json:"promised"`

	// alone is from when on the former primary acknowledged nothing that stays.
	alone time.Duration
}

// Listed is a change of the drill in a lost-change report.
type Listed struct {
	Row    int
	Value  uint64
	Change admin.LostChange
}

// measure computes the figures of an unplanned failover from what is lost.
func (d *drill) measure(r *Report) {
	u := r.Unplanned
	lost := map[LostWrite]bool{}
	for _, w := range r.LostWrites {
		lost[LostWrite{Row: w.Row, Value: w.Value}] = true
		u.RPO = max(u.From, w.Acked) - r.LostWrites[0].Acked // The oldest is the first.
	}
	for row, acked := range d.acked {
		for _, w := range acked {
			if w.from < u.alone || lost[LostWrite{Row: row, Value: w.value}] {
				continue
			}
			if took := w.acked - u.From; u.RTO == nil || took < *u.RTO {
				u.RTO = &took
			}
		}
	}
}

// Compare compares the lost writes of a drill with the lost-change report, and with what the failover stated.
func (r *Report) Compare(listed []Listed) {
	u := r.Unplanned
	u.Listed, u.Compared = len(listed), true
	changes := map[LostWrite]admin.LostChange{}
	for _, l := range listed {
		changes[LostWrite{Row: l.Row, Value: l.Value}] = l.Change
	}
	var promise admin.Time
	for _, s := range u.Stated {
		if s.Service == geo.Table.String() {
			promise = s.LastSyncTime
		}
	}
	u.Unlisted, u.Promised = 0, 0
	for i := range r.LostWrites {
		w := &r.LostWrites[i]
		c, ok := changes[LostWrite{Row: w.Row, Value: w.Value}]
		if !ok {
			u.Unlisted++
			continue
		}
		if w.Listed, w.Committed = c.Answered, c.Committed; !promise.IsZero() && !c.Committed.After(promise.Time) {
			u.Promised++
		}
	}
}

// Faults are what a drill has found that must not be, in words; none if it went well.
func (r *Report) Faults() (out []string) {
	say := func(bad bool, format string, args ...any) {
		if bad {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	for _, m := range r.Moves {
		say(m.Failed != "", "%s", m.Failed)
	}
	u := r.Unplanned
	say(!r.Checked, "the rows were not read at the end: whether an acknowledged write is gone is not known")
	say(u == nil && r.Lost > 0, "acknowledged writes are gone: %d", r.Lost)
	if u != nil {
		say(u.RTO == nil, "no write was acknowledged after the failover")
		say(!u.Followed, "the former primary has not followed")
		say(!u.Compared, "the lost-change report was not read")
		say(u.Unlisted > 0, "acknowledged writes are gone and not in the lost-change report: %d", u.Unlisted)
		say(u.Promised > 0, "acknowledged writes are gone although the Last Sync Time that was stated covers them: %d", u.Promised)
	}
	say(r.Verify != admin.VerifyEqual, "the copies are %s", orNot(r.Verify))
	return out
}

// orNot words the outcome of a comparison.
func orNot(outcome string) string {
	if outcome == "" {
		return "not compared"
	}
	return outcome
}
