package main

import (
	"fmt"
	"io"
	"slices"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/geo"
)

// witnessPlan is what a plan of a failover has of a witness that does not answer the new primary.
type witnessPlan struct {
	// why is empty if it answers, without a witness, and where the port that answers does not show the new primary.
	why      string
	from, to geo.Location
	// worded: the new primary takes writes without a lease, by an operator's word.
	worded bool
	// planned: no unplanned failover is asked about. without: one without the witness is. withdraws: one has ended, and waits for
	// the witness to forget its claim.
	planned, without, withdraws bool
}

// planWitness returns what a failover from a location to another one meets.
func planWitness(s admin.Status, from, to geo.Location) witnessPlan {
	out := witnessPlan{from: from, to: to}
	if i := slices.IndexFunc(s.Locations, func(l admin.Location) bool { return l.Name == to }); i >= 0 {
		out.why, out.worded = check.SilentWitness(s.Locations[i]), check.ByWord(s.Locations[i])
	}
	return out
}

// of returns the plan of an unplanned failover of an account with the phase of the one that is under way.
func (p witnessPlan) of(in admin.Failover, phase string) witnessPlan {
	p.without, p.withdraws = in.WithoutWitness, phase == admin.FailoverWithdrawing
	return p
}

// write names the witness, what an unplanned failover does without its answer, and what to do.
func (p witnessPlan) write(w io.Writer) {
	if p.why == "" {
		return
	}
	line := func(format string, of ...any) { _, _ = fmt.Fprintf(w, "witness    "+format+"\n", of...) }
	line("%s", p.why)
	switch {
	case p.planned || p.without:
	case p.withdraws:
		line("until it has forgotten the claim of the failover that ended, another one begins only with --without-witness: if %s is off and stays off", p.from)
	default:
		line("until it does an unplanned failover waits in phase claiming; after 2 minutes it gives up, and %s refuses writes until the witness is back", p.from)
		line("if %s is off and stays off: failover unplanned with --without-witness does not wait, also where one waits or has given up", p.from)
	}
	if !p.worded {
		line("until it is back %s takes writes of accounts with a copy only after antipodectl location confirm %s --not-promoted", p.to, p.to)
	}
}
