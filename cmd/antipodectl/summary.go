package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/geo"
)

// statusView is which part of a status is shown: all of it, or what fits a screen of 80 columns and 24 rows: a row for each
// location, the nodes and ranges that are not well, and the accounts that are worst off.
type statusView struct {
	all bool
	// account is the one that is shown; empty for all.
	account geo.Account
}

// calmMost is how many accounts are shown of those that are well.
const calmMost = 5

// writeHealth is the first line of a status.
func writeHealth(w io.Writer, s admin.Status) {
	n := map[check.Severity]int{}
	for _, f := range check.Status(s) {
		n[f.Severity]++
	}
	critical, warnings := n[check.Critical], n[check.Warning]
	switch {
	case critical > 0 && warnings > 0:
		_, _ = fmt.Fprintf(w, "health   %d critical, and %d to look at: antipodectl check\n", critical, warnings)
	case critical > 0:
		_, _ = fmt.Fprintf(w, "health   %d critical: antipodectl check\n", critical)
	case warnings > 0:
		_, _ = fmt.Fprintf(w, "health   %d to look at: antipodectl check\n", warnings)
	default:
		_, _ = fmt.Fprintln(w, "health   all is well")
	}
}

// writeSummary writes what fits a screen.
func writeSummary(w io.Writer, s admin.Status) {
	locations := [][]string{{"LOCATION", "STATE", "NODES", "LEADERS", "IN SYNC", "BACKLOG", "OLDEST", "LEVEL"}}
	nodes := [][]string{nodeHeader}
	ranges := [][]string{rangeHeader}
	for _, l := range s.Locations {
		locations = append(locations, locationRow(l))
		for _, n := range l.Nodes {
			if n.State != admin.Running || n.DiskFull || n.ClockOff != "" {
				nodes = append(nodes, nodeRow(n))
			}
		}
		for _, r := range l.Ranges {
			if r.LeaderView == nil || r.InSyncReplicas < r.ConfiguredReplicas {
				ranges = append(ranges, rangeRow(string(l.Name), r))
			}
		}
	}
	_, _ = fmt.Fprintln(w)
	table(w, locations)
	for _, t := range [][][]string{nodes, ranges} {
		if len(t) > 1 {
			_, _ = fmt.Fprintln(w)
			table(w, t)
		}
	}
}

// locationRow sums up a location. One that runs and leads no range serves nothing.
func locationRow(l admin.Location) []string {
	serves, led, inSync, voters := 0, 0, 0, 0
	var backlog uint64
	oldest := 0.0
	for _, n := range l.Nodes {
		if n.State == admin.Running {
			serves++
		}
	}
	for _, r := range l.Ranges {
		voters += r.ConfiguredReplicas
		if v := r.LeaderView; v != nil {
			led, inSync = led+1, inSync+v.InSyncReplicas
			backlog += uint64(max(0, v.BacklogBytes)) + uint64(max(0, v.BacklogPayloadBytes))
			oldest = max(oldest, v.BacklogAgeSeconds)
		}
	}
	state := string(l.State)
	if l.State == admin.Running && led == 0 && len(l.Ranges) > 0 {
		state = "no leaders"
	}
	age := "-"
	if backlog > 0 {
		age = span(oldest)
	}
	of := func(n, all int) string { return fmt.Sprintf("%d of %d", n, all) }
	return []string{string(l.Name), state, of(serves, len(l.Nodes)), of(led, len(l.Ranges)), of(inSync, voters), size(backlog), age, level(l)}
}

// writeAccounts writes a row for each account, or for each of its services that do not do alike, worst first, and counts those
// that are well past calmMost.
func writeAccounts(w io.Writer, s admin.Status) {
	if len(s.Accounts) == 0 {
		_, _ = fmt.Fprintln(w, noAccounts)
		return
	}
	down := map[geo.Location]bool{}
	for _, l := range s.Locations {
		down[l.Name] = check.Down(l)
	}
	var all []accountRows
	for _, a := range s.Accounts {
		all = append(all, rowsOf(a, down))
	}
	slices.SortStableFunc(all, func(a, b accountRows) int {
		return cmp.Or(cmp.Compare(b.trouble, a.trouble), cmp.Compare(b.lag, a.lag))
	})
	rows, calm, worst := [][]string{{"ACCOUNT", "PRIMARY", "SERVICE", "STATUS", "LAG"}}, 0, 0.0
	for _, a := range all {
		if a.trouble == 0 {
			if calm++; calm > calmMost {
				worst = max(worst, a.lag)
				continue
			}
		}
		rows = append(rows, a.rows...)
	}
	table(w, rows)
	if calm > calmMost {
		_, _ = fmt.Fprintf(w, "and %d more that are well, %s behind at most: antipodectl status --all\n", calm-calmMost, span(worst))
	}
}

const noAccounts = "no accounts: make one with antipodectl account create NAME --location LOCATION"

// accountRows are the rows of an account, and what they are sorted by.
type accountRows struct {
	rows [][]string
	// trouble is 2 where its clients are not served, 1 where a service has no Last Sync Time or is late, else 0.
	trouble int
	lag     float64
}

func rowsOf(a admin.AccountStatus, down map[geo.Location]bool) (out accountRows) {
	row := func(service, status, lag string) {
		out.rows = append(out.rows, []string{string(a.Name), orDash(string(a.Primary)), service, status, lag})
	}
	switch {
	case a.WithoutPrimary != "":
		row("all", "without a primary", unknown)
		out.trouble = 2
		return out
	case down[a.Primary]:
		out.trouble = 2
	}
	status := func(s admin.ServiceStatus) string {
		text := string(s.Status)
		if s.Reason != "" {
			text += ": " + s.Reason
		}
		if down[a.Primary] {
			text += ", primary down"
		}
		return text
	}
	alike := true
	for _, s := range a.Services {
		alike = alike && status(s) == status(a.Services[0])
		if s.LagSeconds == nil || *s.LagSeconds > check.Late.Seconds() {
			out.trouble = max(out.trouble, 1)
		}
		if s.LagSeconds != nil {
			out.lag = max(out.lag, *s.LagSeconds)
		}
	}
	switch {
	case len(a.Services) == 0 && down[a.Primary]:
		row("all", "primary down", unknown)
	case len(a.Services) == 0:
		row("all", "-", "-")
	case alike:
		lag := unknown
		if !slices.ContainsFunc(a.Services, func(s admin.ServiceStatus) bool { return s.LagSeconds == nil }) {
			lag = span(out.lag)
		}
		row("all", status(a.Services[0]), lag)
	default:
		for _, s := range a.Services {
			row(s.Service, status(s), spanOrUnknown(s.LagSeconds))
		}
	}
	return out
}

// only leaves one account in a status.
func only(s *admin.Status, name geo.Account) error {
	all := len(s.Accounts)
	s.Accounts = slices.DeleteFunc(s.Accounts, func(a admin.AccountStatus) bool { return a.Name != name })
	if len(s.Accounts) == 0 {
		return fmt.Errorf("there is no account %s among the %s that this port shows: antipodectl account list", name, strconv.Itoa(all))
	}
	return nil
}
