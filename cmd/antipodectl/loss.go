package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

// unplannedPlan is what an unplanned failover of an account would lose, or has lost, and what it would wait for.
type unplannedPlan struct {
	admin.AccountUpdated
	// Witness is why the failover would wait for the witness. Empty if it would not, and where the port that answers does not
	// show the new primary.
	Witness string `json:"witness,omitempty"`
	// CountedAtPrimary are the services of which the primary has counted the known records, up to its last one. The other
	// ones may have lost more.
	CountedAtPrimary []string `json:"counted_at_primary,omitempty"`

	in      admin.Failover
	planned failoverPlan
	// answers: the primary does, though it may not have counted everything.
	answers bool
	// beside: the planned one may still be the one to begin.
	beside bool
}

// planUnplanned asks what an unplanned failover would lose: the secondary, and where it answers the primary, which knows of
// records that it has not named to the secondary yet.
func (t *tool) planUnplanned(ctx context.Context, name geo.Account, in admin.Failover) (unplannedPlan, error) {
	out := unplannedPlan{in: in}
	var err error
	if out.AccountUpdated, err = t.unplanned(ctx, name, in); err != nil || out.Primary == in.To {
		return out, err
	}
	var unasked error
	out.planned, unasked = t.planFailover(ctx, name)
	out.answers = unasked == nil && !out.planned.gone && out.planned.unseen == ""
	if now := out.planned.of; out.answers && !out.Promoting() && !now.Promoting() { // The copy of the record may stand still.
		out.Operation, out.OperationWaits, out.FailoverPhase = now.Operation, now.OperationWaits, now.FailoverPhase
	}
	out.beside = unasked == nil && !out.Promoting()
	out.Witness = out.planned.Witness
	lag := out.planned.lag
	for i := range out.Loss {
		loss := &out.Loss[i]
		loss.KnownRecords = max(loss.KnownRecords, unapplied(lag, loss.Service))
		if out.answers && counted(lag, loss.Service) {
			out.CountedAtPrimary = append(out.CountedAtPrimary, loss.Service)
		}
	}
	return out, nil
}

// unapplied counts the records of a service, or of the catalog, that the secondary is known to lack.
func unapplied(l admin.Lag, service string) (n uint64) {
	for _, s := range l.Streams {
		if s.Service == service && s.LagRecords != nil {
			n += *s.LagRecords
		}
	}
	return n
}

// counted reports whether the primary has counted the records of a service. What a service lacks is known only with what the
// catalog lacks.
func counted(l admin.Lag, service string) bool {
	return slices.ContainsFunc(l.Services, func(s admin.ServiceLag) bool {
		return (s.Service == service || service == geo.Catalog.String()) && s.LagRecords != nil && !s.AtLeast
	})
}

func (p unplannedPlan) write(w io.Writer) {
	writeLoss(w, p.AccountUpdated, p.CountedAtPrimary)
	if p.Primary != p.in.To && len(p.CountedAtPrimary) < len(p.Loss) {
		p.writeUncounted(w)
	}
	if !p.Promoting() || p.FailoverPhase == admin.FailoverWithdrawing {
		p.planned.witness.of(p.in, p.FailoverPhase).write(w)
	}
	if p.beside {
		p.writeAlive(w)
	}
	if p.Refused == "" {
		writeUnchanged(w, p.underWay(), nothingChanged)
	}
}

// underWay is the unplanned failover that is under way, which refuses another one; none where that has it go on without the witness.
func (p unplannedPlan) underWay() []string {
	claims := p.FailoverPhase == admin.FailoverClaiming || p.FailoverPhase == admin.FailoverWithdrawing
	if !p.Promoting() || claims && p.in.WithoutWitness {
		return nil
	}
	return []string{p.Operation}
}

// refusal is that --yes would be refused beside the failover that is under way, nil if it would not.
func (p unplannedPlan) refusal() error {
	if len(p.underWay()) == 0 || p.Refused != "" {
		return nil
	}
	return &command.Error{Code: command.Failed, Err: fmt.Errorf("an unplanned failover of %s is under way, nothing was changed: %s", p.Name, check.UnderWay(p.Account))}
}

// writeUncounted is why KNOWN LOST is not known of all services.
func (p unplannedPlan) writeUncounted(w io.Writer) {
	if p.planned.unseen != "" {
		_, _ = fmt.Fprintf(w, "KNOWN LOST is unknown beyond this: %s\n", p.planned.unseen)
		return
	}
	if p.answers {
		_, _ = fmt.Fprintf(w, "KNOWN LOST is unknown beyond this: not all that %s has committed could be counted: antipodectl lag %s\n", p.Primary, p.Name)
		return
	}
	_, _ = fmt.Fprintf(w, "KNOWN LOST is unknown beyond this: %s has not said how much it has committed\n", p.Primary)
}

// writeAlive warns where the primary of an account answers: it may take writes, all of which an unplanned failover loses.
func (p unplannedPlan) writeAlive(w io.Writer) {
	plan := p.planned
	if plan.alone {
		writeGoesOn(w, plan.From, plan.To)
	}
	if len(plan.Blocked) == 0 {
		_, _ = fmt.Fprintf(w, "%s answers, and nothing blocks a planned failover, which loses nothing: antipodectl failover start %s\n", plan.From, p.Name)
		return
	}
	if slices.ContainsFunc(plan.Services, func(s admin.ServiceLag) bool { return s.LagRecords != nil && !s.AtLeast }) {
		_, _ = fmt.Fprintf(w, "%s answers: what it has acknowledged and is not there would be lost; first mend what blocks a planned failover: "+
			"antipodectl failover check %s\n", plan.From, p.Name)
	}
}

// writeGoesOn warns of a primary that no failover stops: two locations take writes.
func writeGoesOn(w io.Writer, from, to geo.Location) {
	_, _ = fmt.Fprintf(w, "%s takes writes by an operator's word, and goes on: after this failover both locations take writes, until %s is stopped, "+
		"or reaches %s; what it takes meanwhile is not in the copy\n", from, from, to)
}

// writeLoss writes what an unplanned failover of an account loses, or has lost. counted are the services of which the primary
// has counted that.
func writeLoss(w io.Writer, u admin.AccountUpdated, counted []string) {
	_, _ = fmt.Fprintf(w, "account %s is at %s, epoch %s, secondary %s\n", u.Name, u.Primary, u.Epoch, u.Secondary)
	if u.Operation != "" {
		_, _ = fmt.Fprintf(w, "under way: %s\n", check.UnderWay(u.Account))
	}
	writeWaiting(w, u.Account)
	writeStated(w, u.Loss, counted)
}

// writeStated writes what an unplanned failover states about its loss. Where the primary was not asked no number is all.
func writeStated(w io.Writer, loss []admin.ServiceLoss, counted []string) {
	if len(loss) == 0 { // The location was not asked: it does not take itself for the secondary.
		return
	}
	_, _ = fmt.Fprintf(w, "%-8s  %-24s  %14s  %s\n", "SERVICE", "LAST SYNC TIME", "KNOWN LOST", "UNBOUNDED SINCE")
	for _, l := range loss {
		at, since, known := "none ("+l.Reason+")", "ever", strconv.FormatUint(l.KnownRecords, 10)
		if !l.LastSyncTime.IsZero() {
			at = l.LastSyncTime.UTC().Format(lossTime)
		}
		if !l.UnboundedSince.IsZero() {
			since = l.UnboundedSince.UTC().Format(lossTime)
		}
		switch {
		case slices.Contains(counted, l.Service):
		case l.KnownRecords == 0:
			known = unknown
		default:
			known = "at least " + known
		}
		_, _ = fmt.Fprintf(w, "%-8s  %-24s  %14s  %s\n", l.Service, at, known, since)
	}
}

// lossTime shows a time rounded down, so that nothing is promised that does not hold.
const lossTime = "2006-01-02T15:04:05.000Z"
