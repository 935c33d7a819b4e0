package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/geo"
)

// residents are the accounts of a plan that a way back moves beside those that came. Where an account was made is recorded nowhere,
// and when it last came to its primary is.
type residents struct {
	// Since is when the last failover of the other location to this one began.
	Since admin.Time `json:"since"`
	// Accounts have not come since: they were there before, or were made there.
	Accounts []geo.Account `json:"accounts"`
}

// residentsOf returns those of a plan; nil for none, and where no such failover is known to a location that answers.
func (t *tool) residentsOf(ctx context.Context, s admin.Status, p wholePlan) *residents {
	var out residents
	for _, l := range s.Locations {
		if l.State != admin.Running {
			continue
		}
		last, err := t.client.LocationFailover(ctx, l.Name)
		if err == nil && last.From == p.To && last.To == p.From && last.Begun.After(out.Since.Time) {
			out.Since = last.Begun
		}
	}
	if out.Since.IsZero() {
		return nil
	}
	for _, a := range s.Accounts {
		if a.Primary == p.From && a.Secondary != "" && !a.LastFailover.After(out.Since.Time) {
			out.Accounts = append(out.Accounts, a.Name)
		}
	}
	if len(out.Accounts) == 0 {
		return nil
	}
	return &out
}

// residentsMost is how many accounts a plan names.
const residentsMost = 3

func (r *residents) write(w io.Writer, from geo.Location) {
	if r == nil {
		return
	}
	var names []string
	for _, a := range r.Accounts[:min(len(r.Accounts), residentsMost)] {
		names = append(names, string(a))
	}
	if more := len(r.Accounts) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	_, _ = fmt.Fprintf(w, "moves too  %s that did not come with the failover of %s of %s: %s; to leave them: docs/runbooks/location-failover.md\n",
		check.Count(len(r.Accounts), "account"), from, r.Since.UTC().Format(lossTime), strings.Join(names, ", "))
}
