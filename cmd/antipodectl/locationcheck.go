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

// checkStreams asks the location whether the streams of its accounts move to the other one. It changes nothing.
func (t *tool) checkStreams(ctx context.Context, p *wholePlan) error {
	_, err := t.client.FailLocationOver(ctx, p.From, admin.Failover{Type: admin.FailoverPlanned, DryRun: true})
	var refused *admin.Error
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusConflict:
		p.Blocked = append(p.Blocked, causeOf(refused)) // Else it is an older program, which does not check.
	}
	return nil
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
// dead, and at one that serves it loses nothing.
func (p wholePlan) writeOther(w io.Writer) {
	switch {
	case p.unseen != "" && p.unplanned:
		_, _ = fmt.Fprintf(w, "whether %s serves, and which accounts are there that %s does not know of, is not known: %s\n", p.From, p.To, p.unseen)
	case p.Accounts == 0:
	case p.unseen != "": // That is what blocks it.
	case p.unplanned && p.serves:
		_, _ = fmt.Fprintf(w, "%s serves: a planned failover loses nothing: antipodectl failover plan --location %s\n", p.From, p.From)
	case !p.unplanned && !p.serves && p.runs:
		_, _ = fmt.Fprintf(w, "if it will not be back soon: antipodectl failover unplanned --location %s --to %s\n", p.From, p.To)
	}
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
