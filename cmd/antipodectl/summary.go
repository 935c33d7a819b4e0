package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

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

const (
	// screenRows and screenColumns are what a screen has at least.
	screenRows, screenColumns = 24, 80
	// calmMost is how many accounts are shown of those that are well; troubledMost of the others where a screen has room
	// for them, and troubledLeast where it has not.
	calmMost, troubledMost, troubledLeast = 5, 10, 3
	// namedFrom is from how many seconds of lag the account that is furthest behind is shown where a screen has no room.
	namedFrom = 10.0
	// unwellMost is how many lines there are for nodes that are not well, and for ranges.
	unwellMost = 4
)

// rowsOfScreen is how many rows of a screen lines take.
func rowsOfScreen(text string) (rows int) {
	for line := range strings.Lines(text) {
		for row := range strings.SplitSeq(wrapped(strings.TrimSuffix(line, "\n"), screenColumns), "\n") {
			rows += 1 + max(0, len(row)-1)/screenColumns
		}
	}
	return rows
}

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

// writeSummary writes what fits a screen, below the lines for nodes with something wrong. The row of a location that serves
// nothing stands for its ranges.
func writeSummary(w io.Writer, s admin.Status) {
	locations := [][]string{{"LOCATION", "STATE", "NODES", "LEADERS", "IN SYNC", "BACKLOG", "OLDEST", "LEVEL"}}
	nodes := [][]string{nodeHeader}
	ranges := [][]string{shortRange(rangeHeader)}
	for _, l := range s.Locations {
		locations = append(locations, locationRow(l))
		for _, n := range l.Nodes {
			if n.State != admin.Running && nodeAlarm(n) == "" {
				nodes = append(nodes, nodeRow(n))
			}
		}
		for _, r := range l.Ranges {
			if check.Serves(l) && (r.LeaderView == nil || r.InSyncReplicas < r.ConfiguredReplicas) {
				ranges = append(ranges, shortRange(rangeRow(string(l.Name), r)))
			}
		}
	}
	_, _ = fmt.Fprintln(w)
	table(w, locations)
	for _, t := range [][][]string{nodes, ranges} {
		if len(t) > 1 {
			_, _ = fmt.Fprintln(w)
			more := 0
			if unwell := len(t) - 1; unwell > unwellMost {
				more = unwell - unwellMost + 1
			}
			table(w, t[:len(t)-more])
			if more > 0 {
				_, _ = fmt.Fprintf(w, moreUnwell, more)
			}
		}
	}
}

// shortRange is a row of a range without its number, since its service names it, and without who is not in sync.
func shortRange(row []string) []string {
	row = append([]string{row[0]}, row[2:]...)
	row[3], _, _ = strings.Cut(row[3], ",")
	return row
}

// locationState is the state of a location. One that runs and leads no range serves nothing.
func locationState(l admin.Location) string {
	if l.State == admin.Running && !check.Serves(l) {
		return "no leaders"
	}
	return string(l.State)
}

// locationRow sums up a location.
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
	waits, age := size(backlog), "-"
	switch {
	case led < len(l.Ranges) || len(l.Ranges) == 0: // What the other ranges have is not known.
		waits = unknown
	case backlog > 0:
		age = span(oldest)
	}
	of := func(n, all int) string { return fmt.Sprintf("%d of %d", n, all) }
	row := []string{string(l.Name), locationState(l), of(serves, len(l.Nodes)), of(led, len(l.Ranges)), of(inSync, voters), waits, age, level(l)}
	if len(l.Ranges) == 0 { // Nobody there answers.
		row[3], row[4] = unknown, unknown
	}
	return row
}

// writeAccounts writes a row for each account, or for each of its services that do not do alike, worst first, and counts the
// others past calmMost and troubledMost. It takes as many lines as there is room for, if that suffices for troubledLeast.
func writeAccounts(w io.Writer, s admin.Status, room int) {
	if len(s.Accounts) == 0 {
		_, _ = fmt.Fprintln(w, noAccounts)
		return
	}
	down := notServing(s)
	var all []accountRows
	for _, a := range s.Accounts {
		all = append(all, rowsOf(a, down, check.TwoPrimaries(s, a)))
	}
	slices.SortStableFunc(all, func(a, b accountRows) int {
		return cmp.Or(cmp.Compare(b.trouble, a.trouble), cmp.Compare(b.lag, a.lag))
	})
	room -= 3 // What the rows of accounts stand between.
	rows, troubled, calm, worst := [][]string{{"ACCOUNT", "PRIMARY", "SERVICE", "STATUS", "LAG"}}, 0, 0, -1.0
	shown := map[bool]int{}
	for i, a := range all {
		well, most := a.trouble == 0, troubledMost
		if well {
			most = calmMost
		}
		fits := len(rows)-1+len(a.rows) <= room || !well && i < troubledLeast || i == 0 && a.lag > namedFrom
		switch {
		case shown[well] < most && fits:
			shown[well]++
			rows = append(rows, a.rows...)
		case well:
			calm, worst = calm+1, max(worst, a.lag)
		default:
			troubled++
		}
	}
	table(w, rows)
	if troubled > 0 {
		_, _ = fmt.Fprintf(w, moreUnwell, troubled)
	}
	switch {
	case calm > 0 && worst < 0:
		_, _ = fmt.Fprintf(w, "and %d more without a copy here: antipodectl status --all\n", calm)
	case calm > 0:
		_, _ = fmt.Fprintf(w, "and %d more that are well, %s behind at most: antipodectl status --all\n", calm, span(worst))
	}
}

const moreUnwell = "and %d more that are not well: antipodectl status --all\n"

const noAccounts = "no accounts: make one with antipodectl account create NAME --location LOCATION"

// notServing has the locations that serve nothing.
func notServing(s admin.Status) map[geo.Location]bool {
	out := map[geo.Location]bool{}
	for _, l := range s.Locations {
		out[l.Name] = !check.Serves(l)
	}
	return out
}

// serviceStatus words the status of a service of an account. What was live is not, without its primary.
func serviceStatus(s admin.ServiceStatus, primaryDown bool) string {
	text := string(s.Status)
	switch {
	case primaryDown && s.Status == admin.Live:
		return primaryNotServing
	case s.Reason != "":
		text += ": " + s.Reason
	}
	return text
}

const primaryNotServing = "primary not serving"

// accountRows are the rows of an account, and what they are sorted by.
type accountRows struct {
	rows [][]string
	// trouble is 2 where its clients are not served, or both locations serve them; 1 where nothing is replicated, or a service has
	// no Last Sync Time or is late; else 0.
	trouble int
	// lag is below zero where nothing is known of a copy.
	lag float64
}

func rowsOf(a admin.AccountStatus, down map[geo.Location]bool, twice bool) (out accountRows) {
	row := func(service, status, lag string) {
		out.rows = append(out.rows, []string{string(a.Name), orNone(string(a.Primary)), service, status, lag})
	}
	switch {
	case a.WithoutPrimary != "":
		row("all", "without a primary", unknown)
		out.trouble = 2
		return out
	case twice:
		row("all", "two primaries", unknown)
		out.trouble = 2
		return out
	case down[a.Primary]:
		out.trouble = 2
	}
	_, asked := down[a.Secondary]
	status := func(s admin.ServiceStatus) string { return serviceStatus(s, down[a.Primary]) }
	if len(a.Services) == 0 {
		out.lag = -1
	}
	alike := true
	for _, s := range a.Services {
		alike = alike && status(s) == status(a.Services[0])
		if s.LagSeconds == nil || *s.LagSeconds > check.Late.Seconds() || s.Status == admin.Unavailable {
			out.trouble = max(out.trouble, 1)
		}
		if s.LagSeconds != nil {
			out.lag = max(out.lag, *s.LagSeconds)
		}
	}
	switch {
	case len(a.Services) == 0 && down[a.Primary]:
		row("all", primaryNotServing, unknown)
	case len(a.Services) == 0 && down[a.Secondary]:
		out.trouble = 1
		row("all", "secondary not serving", unknown)
	case len(a.Services) == 0 && asked: // It does not know that it is the secondary.
		out.trouble = 1
		row("all", "not replicated", unknown)
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

// knows refuses the name of an account that a status does not show; empty for all accounts.
func knows(s admin.Status, name geo.Account) error {
	if name == "" || slices.ContainsFunc(s.Accounts, func(a admin.AccountStatus) bool { return a.Name == name }) {
		return nil
	}
	return fmt.Errorf("there is no account %s among the %d that this port shows: antipodectl account list", name, len(s.Accounts))
}
