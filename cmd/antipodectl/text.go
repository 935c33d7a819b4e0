package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
)

const unknown = "unknown"

// table writes aligned columns; rows begin with their header.
func table(w io.Writer, rows [][]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		_, _ = fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	_ = tw.Flush() // The writers are string builders.
}

// Headers of the tables of nodes and ranges.
var (
	nodeHeader  = []string{"NODE", "STATE", "LEADS", "IN SYNC", "LOG", "REPLAYED AT START"}       //nolint:gochecknoglobals // A constant.
	rangeHeader = []string{"RANGE OF", "ID", "SERVICE", "LEADER", "IN SYNC", "BACKLOG", "OLDEST"} //nolint:gochecknoglobals // A constant.
)

// writeStatus writes the status for people.
func writeStatus(out io.Writer, s admin.Status, v statusView) {
	w, under := &strings.Builder{}, &strings.Builder{}
	defer func() { _, _ = io.WriteString(out, w.String()+under.String()) }()
	writeHealth(w, s)
	refusals := check.Refusals(s)
	if v.account != "" { // Not before: how bad something is goes by all accounts.
		s.Accounts = slices.DeleteFunc(slices.Clone(s.Accounts), func(a admin.AccountStatus) bool { return a.Name != v.account })
	}
	most := len(s.Accounts)
	if !v.all {
		most = underWayMost
	}
	writeUnderWay(under, s.Accounts, most)
	_, _ = fmt.Fprintf(w, "process  pid %d, up %s, since %s\n", s.Process.PID,
		span(s.Process.UptimeSeconds), instant(s.Process.StartedAt))
	_, _ = fmt.Fprintf(w, "link     %s\n", link(s.Link))
	_, _ = fmt.Fprintf(w, "alarms   %s\n", alarms(s, v.all))
	for _, f := range refusals {
		_, _ = fmt.Fprintf(w, "%-8s %s; next: %s\n", strings.ToUpper(string(f.Severity)), f.What, f.Next)
	}
	for _, l := range s.Locations {
		for _, n := range l.Nodes {
			if !v.all && n.State == admin.Unreachable && check.Down(l) {
				continue // The row of the location says so.
			}
			if why := nodeAlarm(n); why != "" {
				_, _ = fmt.Fprintf(w, "WARNING  %s %s\n", n.Name, why)
			}
		}
	}
	for _, l := range s.Locations {
		for _, c := range l.Clones {
			_, _ = fmt.Fprintf(w, "clone    %s on %s, deleted at %s\n", c.Name, c.Node, instant(c.Expires))
		}
		for _, text := range l.Warnings {
			if !check.OfEpochs(l, text) && !check.Down(l) { // That it is down is critical, and said.
				_, _ = fmt.Fprintf(w, "WARNING  %s: %s\n", l.Name, text)
			}
		}
		for _, n := range l.Nodes {
			if n.ClockOff != "" {
				_, _ = fmt.Fprintf(w, "WARNING  %s: %s; it takes no writes as a leader: docs/runbooks/clock-skew.md\n", n.Name, n.ClockOff)
			}
			if n.SetAsideBytes > 0 {
				_, _ = fmt.Fprintf(w, "WARNING  %s: %s of damaged stores are set aside in its folder\n", n.Name, size(uint64(n.SetAsideBytes)))
			}
		}
	}

	if v.all {
		writeTables(w, s)
	} else {
		writeSummary(w, s)
	}
	_, _ = fmt.Fprintln(w)
	if v.all || v.account != "" {
		writeSync(w, s)
	} else {
		writeAccounts(w, s, screenRows-rowsOfScreen(w.String())-rowsOfScreen(under.String()))
	}
}

// underWayMost is how many accounts with an operation under way a screen shows.
const underWayMost = 3

// writeTables writes all locations, nodes and ranges.
func writeTables(w io.Writer, s admin.Status) {
	locations := [][]string{{"LOCATION", "STATE", "LEVEL", "ROLE"}}
	nodes, ranges := [][]string{nodeHeader}, [][]string{rangeHeader}
	for _, l := range s.Locations {
		locations = append(locations, []string{string(l.Name), locationState(l), level(l), l.Role})
		for _, n := range l.Nodes {
			nodes = append(nodes, nodeRow(n))
		}
		for _, r := range l.Ranges {
			ranges = append(ranges, rangeRow(string(l.Name), r))
		}
	}
	for _, t := range [][][]string{locations, nodes, ranges} {
		_, _ = fmt.Fprintln(w)
		table(w, t)
	}
}

// level is the feature level of a location, and what all its nodes know if that is more.
func level(l admin.Location) string {
	if l.Levels == nil {
		return "-"
	}
	out, known := fmt.Sprint(l.Levels.Active), uint32(0)
	for i, n := range l.Nodes {
		if i == 0 || n.Level < known {
			known = n.Level
		}
	}
	switch {
	case l.Levels.Floor > l.Levels.Active:
		return fmt.Sprintf("%s, floor %d: finalize again", out, l.Levels.Floor)
	case known > l.Levels.Active:
		return fmt.Sprintf("%s, nodes know %d: not finalized", out, known)
	}
	return out
}

func nodeRow(n admin.Node) []string {
	state := string(n.State)
	if n.DiskFull {
		state += ", disk full"
	}
	if len(n.Replicas) == 0 {
		return []string{n.Name, state, "-", "-", "-", "-"}
	}
	var leads []string
	var inSync int
	var logBytes, replayed, logged uint64
	for _, r := range n.Replicas {
		if r.Leader {
			leads = append(leads, r.Service)
		}
		if r.InSync {
			inSync++
		}
		logBytes += r.LogBytes
		replayed += r.ReplayedEntries
		logged += r.LoggedEntriesAtStart
	}
	led := "-"
	if len(leads) > 0 {
		led = strings.Join(leads, ",")
	}
	return []string{
		n.Name, state, led, fmt.Sprintf("%d of %d", inSync, len(n.Replicas)),
		size(logBytes), fmt.Sprintf("%d of %d entries", replayed, logged),
	}
}

func rangeRow(location string, r admin.Range) []string {
	id := strconv.FormatUint(uint64(r.Range), 10)
	v := r.LeaderView
	if v == nil {
		return []string{
			location, id, r.Service, "none",
			fmt.Sprintf("%s of %d", unknown, r.ConfiguredReplicas), unknown, unknown,
		}
	}
	oldest, backlog := "-", fmt.Sprintf("%s, %s", check.Count(v.BacklogRecords, "record"), size(uint64(max(0, v.BacklogBytes))))
	if v.BacklogRecords > 0 {
		oldest = span(v.BacklogAgeSeconds)
	}
	if v.BacklogPayloadBytes > 0 {
		backlog += fmt.Sprintf(", %s of payload", size(uint64(v.BacklogPayloadBytes)))
	}
	return []string{
		location, id, r.Service, v.Leader,
		inSync(v, r.ConfiguredReplicas),
		backlog, oldest,
	}
}

// inSync counts the replicas in sync and names those that are not, and since when.
func inSync(v *admin.LeaderView, configured int) string {
	out := fmt.Sprintf("%d of %d", v.InSyncReplicas, configured)
	for _, s := range v.Standings {
		if !s.InSync {
			out += fmt.Sprintf(", not %s since %s", s.Node, instant(s.Since))
		}
	}
	return out
}

// writeSync writes how far the secondaries are.
func writeSync(w io.Writer, s admin.Status) {
	down := notServing(s)
	rows := [][]string{{"ACCOUNT", "PRIMARY", "SECONDARY", "SERVICE", "STATUS", "LAST SYNC TIME", "LAG", "STREAMS BEHIND"}}
	for _, a := range s.Accounts {
		head := []string{string(a.Name), string(a.Primary), orNone(string(a.Secondary))}
		for _, s := range a.Services {
			last, lag := unknown, unknown
			if !s.LastSyncTime.IsZero() {
				last = instant(s.LastSyncTime)
			}
			if s.LagSeconds != nil {
				lag = span(*s.LagSeconds)
			}
			rows = append(rows, append(slices.Clone(head), s.Service, serviceStatus(s, down[a.Primary]), last, lag, strconv.Itoa(s.StreamsBehind)))
		}
		if len(a.Services) == 0 {
			rows = append(rows, append(slices.Clone(head), "-", "-", "-", "-", "-"))
		}
	}
	if len(s.Accounts) == 0 {
		_, _ = fmt.Fprintln(w, noAccounts)
		return
	}
	table(w, rows)
}

// writeUnderWay writes the operations of so many accounts, and the bootstraps.
func writeUnderWay(w io.Writer, accounts []admin.AccountStatus, most int) {
	under := make([]admin.Account, 0, len(accounts))
	for _, a := range accounts {
		under = append(under, a.Account)
	}
	writeOperations(w, under, most)
	if rows := copyRows(accounts); rows != nil {
		_, _ = fmt.Fprintln(w)
		table(w, append([][]string{{"BOOTSTRAP OF", "COPIED", "ROWS", "BYTES", "RATE", "LEFT (ESTIMATE)", "NOT ACKNOWLEDGED"}}, rows...))
	}
}

func link(l admin.Link) string {
	if l.State == admin.LinkDelayed {
		return fmt.Sprintf("delayed by %s", span(l.DelaySeconds))
	}
	return string(l.State)
}

// nodeAlarm says what is wrong with a node that nobody stopped and that serves nothing, and what to do; "" if nothing is.
func nodeAlarm(n admin.Node) string {
	switch {
	case n.State == admin.Unreachable:
		return "does not answer: see its process, and its log"
	case n.State != admin.Failed:
		return ""
	case n.OutOfService == "": // A version that does not say it.
		return "is out of service: its log says why"
	}
	return "is out of service: " + n.OutOfService
}

// alarmEnds is after how long without another one an alarm of streams is over, by the clock of the server.
const alarmEnds = time.Hour

// alarms counts the nodes that are out of service now, and the alarms of streams by reason, with when the last one
// was raised: whether its cause still holds is in the status of accounts. Alarms that are over have a count alone,
// unless all are asked for.
func alarms(s admin.Status, all bool) string {
	ended := s.Process.StartedAt.Add(time.Duration(s.Process.UptimeSeconds * float64(time.Second))).Add(-alarmEnds)
	var over uint64
	var out []string
	down := 0
	for _, l := range s.Locations {
		for _, n := range l.Nodes {
			if nodeAlarm(n) != "" {
				down++
			}
		}
	}
	if down > 0 {
		out = append(out, fmt.Sprintf("nodes that do not serve %d", down))
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Alarms)) {
		if s.Alarms[reason] == 0 {
			continue
		}
		text, last := fmt.Sprintf("%s %d", reason, s.Alarms[reason]), admin.Time{}
		for _, l := range s.Locations {
			if at := l.AlarmsRaised[reason]; at.After(last.Time) {
				last = at
			}
		}
		if !last.IsZero() && last.Before(ended) && !all {
			over += s.Alarms[reason]
			continue
		}
		if !last.IsZero() {
			text += " (last " + last.UTC().Format(time.RFC3339) + ")"
		}
		out = append(out, text)
	}
	text := cmp.Or(strings.Join(out, ", "), "none")
	if over > 0 {
		text += fmt.Sprintf("; %d more than an hour ago: antipodectl status --all", over)
	}
	return text
}

// instant prints milliseconds, rounded down: a Last Sync Time must not gain.
func instant(t admin.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// span prints seconds, rounded up to what is shown: a lag must not shrink.
func span(seconds float64) string {
	switch {
	case seconds < 60:
		return strconv.FormatFloat(max(0, math.Ceil(seconds*1000-1e-6))/1000, 'f', 3, 64) + "s"
	case seconds < float64(math.MaxInt64/int64(time.Second)):
		return (time.Duration(math.Ceil(seconds)) * time.Second).String()
	}
	return strconv.FormatFloat(seconds, 'g', 4, 64) + "s"
}

func size(bytes uint64) string { return command.Size(bytes).String() }

// orNone words what there is none of, such as the secondary of an account without a copy. orDash is for what is not
// known.
func orNone(s string) string { return cmp.Or(s, "none") }

// orDash marks what is not known, or does not apply.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
