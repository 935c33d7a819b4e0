package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

// wholeCheck is which accounts an unplanned failover of a location would refuse.
type wholeCheck struct {
	// Refused is how many, and Accounts are the first of them.
	Refused  int                     `json:"refused"`
	Accounts []admin.RefusedFailover `json:"refused_accounts"`
	// Unchecked is how many are not refused as far as is known: see admin.LocationFailover.
	Unchecked int `json:"unchecked,omitempty"`
	// Moving are those of which one is under way already, by its phase. One without the witness has those go on that wait for it.
	Moving map[string]int `json:"moving,omitempty"`
	// Stay are those of which the location does not know a copy: it has none, or does not know of it yet.
	Stay int `json:"stay,omitempty"`
	// Unknown is why the location does not say.
	Unknown string `json:"unknown,omitempty"`
}

// checkStreams asks the location whether the streams of its accounts move to the other one, and returns why not. It changes
// nothing.
func (t *tool) checkStreams(ctx context.Context, p wholePlan) (blocked []string, err error) {
	_, err = t.client.FailLocationOver(ctx, p.From, admin.Failover{Type: admin.FailoverPlanned, DryRun: true})
	var refused *admin.Error
	switch {
	case !errors.As(err, &refused):
		return nil, err
	case refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusConflict:
		return []string{causeOf(refused)}, nil // Else it is an older program, which does not check.
	}
	return nil, nil
}

// checkPlanned asks, for the plan of an unplanned failover, whether a planned one could be begun instead.
func (t *tool) checkPlanned(ctx context.Context, p *wholePlan) error {
	if !p.serves || p.Accounts == 0 || p.unseen != "" || len(p.Blocked)+len(p.PlannedBlocked) > 0 {
		return nil
	}
	var err error
	p.PlannedBlocked, err = t.checkStreams(ctx, *p)
	return err
}

// checkWhole asks the other location which accounts an unplanned failover would refuse, unless it does not run.
func (t *tool) checkWhole(ctx context.Context, p *wholePlan, in admin.Failover) {
	if !p.runs {
		return
	}
	in.Type, in.DryRun = admin.FailoverUnplanned, true
	now, err := t.client.FailLocationOver(ctx, p.To, in)
	p.Unplanned = &wholeCheck{Refused: now.Refused, Accounts: now.RefusedAccounts, Unchecked: now.Unchecked}
	if p.Unplanned.Accounts == nil {
		p.Unplanned.Accounts = []admin.RefusedFailover{}
	}
	if refused := (*admin.Error)(nil); p.unplanned && errors.As(err, &refused) && refused.Status == http.StatusConflict {
		p.Unplanned = nil // Another one is under way: --yes is refused, too.
		p.Blocked = append(p.Blocked, causeOf(refused))
		return
	}
	if err != nil {
		p.Unplanned.Unknown = check.OneLine(err.Error())
		return
	}
	p.Unplanned.Moving = now.Moving
	p.Unplanned.Stay = max(0, p.Accounts-now.Waiting-p.Unplanned.moving())
}

// writeOther names the other kind of failover where that is the one to think of: no planned one begins at a location that is
// dead, and at one that serves it loses nothing, where nothing blocks it.
func (p wholePlan) writeOther(w io.Writer) {
	switch {
	case p.unseen != "" && p.unplanned:
		_, _ = fmt.Fprintf(w, "whether %s serves, and which accounts are there that %s does not know of, is not known: %s\n", p.From, p.To, p.unseen)
	case p.Accounts == 0:
	case p.unseen != "": // That is what blocks it.
	case p.unplanned && p.serves:
		p.writeAlive(w)
	case p.otherwise() != "":
		_, _ = fmt.Fprintln(w, p.otherwise())
	}
}

// writeAlive warns where the location that an unplanned failover leaves serves: see unplannedPlan.writeAlive.
func (p wholePlan) writeAlive(w io.Writer) {
	if p.alone {
		writeGoesOn(w, p.From, p.To)
	}
	for _, b := range p.PlannedBlocked {
		_, _ = fmt.Fprintf(w, "planned    blocked: %s\n", b)
	}
	if len(p.Blocked)+len(p.PlannedBlocked) == 0 {
		_, _ = fmt.Fprintf(w, "%s serves: a planned failover loses nothing: antipodectl failover check --location %s\n", p.From, p.From)
		return
	}
	_, _ = fmt.Fprintf(w, "%s serves: what it has acknowledged and is not at %s would be lost; first mend what blocks a planned failover: "+
		"antipodectl failover check --location %s\n", p.From, p.To, p.From)
}

// otherwise is the unplanned failover that is left where the location does not serve, of the plan of a planned one; else empty.
func (p wholePlan) otherwise() string {
	if p.unplanned || p.serves || !p.runs || p.unseen != "" || p.Accounts == 0 {
		return ""
	}
	return fmt.Sprintf("if it will not be back soon: antipodectl failover unplanned --location %s --to %s", p.From, p.To)
}

// moving is how many accounts have one under way already; nil has none.
func (c *wholeCheck) moving() (n int) {
	for _, of := range c.Moving {
		n += of
	}
	return n
}

// write writes what an unplanned failover would refuse.
func (c *wholeCheck) write(w io.Writer, causes int) {
	switch {
	case c == nil:
	case c.Unknown != "":
		_, _ = fmt.Fprintf(w, "unplanned  which accounts would be refused is not known: %s\n", c.Unknown)
	default:
		_, _ = fmt.Fprintf(w, "unplanned  %s would be refused\n", check.Count(c.Refused, "account"))
		writeRefused(w, c.Accounts, c.Refused, causes)
		if n := c.moving(); n > 0 {
			_, _ = fmt.Fprintf(w, "unplanned  %s would not begin one: it is under way already%s\n", check.Count(n, "account"), phases(c.Moving))
		}
		if c.Stay > 0 {
			_, _ = fmt.Fprintf(w, "unplanned  %s would stay: the other location knows of no copy\n", check.Count(c.Stay, "account"))
		}
		if c.Unchecked > 0 {
			_, _ = fmt.Fprintf(w, "unplanned  of %s it is not known: ranges do not answer\n", check.Count(c.Unchecked, "account"))
		}
	}
}

// refusal is that an unplanned failover would refuse accounts; nil if it would not, as far as is known.
func (c *wholeCheck) refusal(from geo.Location) error {
	if c == nil || c.Refused == 0 {
		return nil
	}
	return &command.Error{Code: command.Failed, Err: fmt.Errorf("%s of %s would be refused, nothing was changed", check.Count(c.Refused, "account"), from)}
}

// writeRefused writes why accounts are refused: the location lists the first of them, and counts all.
func writeRefused(w io.Writer, list []admin.RefusedFailover, all, causes int) {
	writeCauses(w, "refused", list, all, causes, "")
}
