package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"antipode/client/admin"
	"antipode/geo"
)

// Severity says how bad a finding is.
type Severity string

// The severities. Critical: clients of a primary name are refused, or replication to a location or of an account stands
// until somebody acts, so that a failover would lose what is written meanwhile. Warning: one more fault could make it so, or
// it may end by itself.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
)

// Finding is a cause of trouble.
type Finding struct {
	Severity Severity `json:"severity"`
	// What says what happened, to what, in one line.
	What string `json:"what"`
	// Next is the command to give next, or a page of docs/runbooks.
	Next string `json:"next,omitempty"`
}

// Late is the lag from which a secondary is late.
const Late = time.Minute

// Status finds what is wrong, worst first.
func Status(s admin.Status) []Finding {
	f := findings{status: s, down: map[geo.Location]bool{}}
	f.whole = f.wholes()
	for _, l := range s.Locations {
		f.down[l.Name] = Down(l)
	}
	for _, l := range s.Locations {
		f.location(l)
	}
	f.witness()
	f.link()
	f.primaries()
	f.operations()
	f.locationFailovers()
	f.promotions()
	f.accounts()
	return f.sorted()
}

// Refusals finds what has locations refuse requests, or what is replicated to them, nodes that are stopped, and accounts that both
// locations take writes of, worst first: those findings of Status that a status shows beside its tables.
func Refusals(s admin.Status) []Finding {
	f := findings{status: s, down: map[geo.Location]bool{}}
	for _, l := range s.Locations {
		f.down[l.Name] = Down(l)
	}
	for _, l := range s.Locations {
		if f.down[l.Name] {
			f.locationDown(l)
			continue
		}
		f.stopped(l)
		f.full(l)
		f.leaderless(l)
		f.epochs(l)
	}
	f.witness()
	f.primaries()
	return f.sorted()
}

// Worst returns the severity of the worst finding; empty without one.
func Worst(list []Finding) (worst Severity) {
	for _, f := range list {
		if worst == "" || f.Severity < worst {
			worst = f.Severity
		}
	}
	return worst
}

type findings struct {
	status admin.Status
	down   map[geo.Location]bool
	whole  map[geo.Location]*whole
	list   []Finding
}

func (f *findings) sorted() []Finding {
	slices.SortStableFunc(f.list, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) }) // In this order by their names.
	return f.list
}

func (f *findings) add(s Severity, next, what string, args ...any) {
	f.list = append(f.list, Finding{s, OneLine(fmt.Sprintf(what, args...)), next})
}

// Down reports whether no node of a location serves, as far as the status shows.
func Down(l admin.Location) bool {
	return !slices.ContainsFunc(l.Nodes, func(n admin.Node) bool { return n.State == admin.Running || n.State == admin.Starting })
}

// Serves reports whether a location can serve clients: it is not down, and leads at least one of its ranges.
func Serves(l admin.Location) bool {
	return !Down(l) && (len(l.Ranges) == 0 || slices.ContainsFunc(l.Ranges, func(r admin.Range) bool { return r.LeaderView != nil }))
}

// Stopped reports whether the processes of a location answer and an operator stopped it: none of its nodes runs, or fails to.
func Stopped(l admin.Location) bool {
	return l.State == admin.Stopped && !slices.ContainsFunc(l.Nodes, func(n admin.Node) bool { return n.State != admin.Stopped })
}

// Start is the command that starts a location again.
func Start(l geo.Location) string { return "antipodectl location start " + string(l) }

// stopped finds nodes that an operator stopped: their processes answer.
func (f *findings) stopped(l admin.Location) {
	var names, next []string
	for _, n := range l.Nodes {
		if n.State == admin.Stopped {
			names, next = append(names, n.Name), append(next, "antipodectl node start "+n.Name)
		}
	}
	if len(names) > 0 {
		f.add(Warning, strings.Join(next, ", "), "%s: %d of %d nodes %s stopped: %s", l.Name, len(names), len(l.Nodes), Are(len(names)), strings.Join(names, ", "))
	}
}

// location finds what is wrong with a location and its nodes.
func (f *findings) location(l admin.Location) {
	if f.down[l.Name] {
		f.locationDown(l)
		return
	}
	f.stopped(l)
	f.nodes(l)
	f.full(l)
	f.ranges(l)
	f.epochs(l)
	if !f.parted(l) {
		f.unseen(l)
	}
	for _, text := range l.Warnings {
		if !OfEpochs(l, text) {
			next := ""
			if strings.HasPrefix(text, admin.WarnsOfCatalog) {
				next = leaderPage
			}
			f.add(Warning, next, "%s: %s", l.Name, text)
		}
	}
}

func (f *findings) locationDown(l admin.Location) {
	served, alone, copies := 0, 0, 0
	for _, a := range f.status.Accounts {
		switch {
		case a.Secondary == l.Name:
			copies++
		case a.Primary == l.Name && a.Secondary == "":
			alone++
			served++
		case a.Primary == l.Name:
			served++
		}
	}
	what := fmt.Sprintf("%s is down: none of its %s serves", l.Name, Count(len(l.Nodes), "node"))
	stopped := Stopped(l)
	switch {
	case stopped:
		what = fmt.Sprintf("%s is stopped: none of its %s serves", l.Name, Count(len(l.Nodes), "node"))
	case len(l.Nodes) == 0:
		what = fmt.Sprintf("%s does not answer", l.Name)
	}
	next := "docs/runbooks/target-down.md"
	if served > 0 {
		what += "; it is the primary of " + Count(served, "account")
	}
	if alone > 0 {
		what += fmt.Sprintf(", %d of them without a copy", alone)
	}
	if copies > 0 {
		what += "; nothing is replicated to it, for " + Count(copies, "account")
	}
	switch {
	case stopped:
		next = Start(l.Name)
	case served > alone:
		next = "antipodectl failover check --location " + string(l.Name)
	}
	f.add(Critical, next, "%s", what)
}

// nodes finds nodes that do not do what they should.
func (f *findings) nodes(l admin.Location) {
	var away, off []string
	for _, n := range l.Nodes {
		switch n.State {
		case admin.Failed:
			f.add(Warning, "docs/runbooks/node-out-of-service.md", "%s is out of service: %s", n.Name, cmp.Or(n.OutOfService, "its log says why"))
		case admin.Unreachable:
			away = append(away, n.Name)
		}
		if n.ClockOff != "" {
			off = append(off, n.Name+" ("+n.ClockOff+")")
		}
	}
	if len(away) > 0 {
		f.add(Warning, "docs/runbooks/target-down.md", "%s: %d of %d nodes do not answer: %s", l.Name, len(away), len(l.Nodes), strings.Join(away, ", "))
	}
	if len(off) > 0 {
		f.add(ofQuorum(l, off), "docs/runbooks/clock-skew.md", "%s: a clock is not believed, so the node leads no writes: %s", l.Name, strings.Join(off, "; "))
	}
}

// ofQuorum is how bad it is that these nodes of a location take no writes: most nodes make a quorum, so that without them
// there are none at all.
func ofQuorum(l admin.Location, of []string) Severity {
	if 2*len(of) > len(l.Nodes) {
		return Critical
	}
	return Warning
}

// full finds nodes whose disk is full. One of them closes the stream to the location, which has a copy on each node: the
// accounts whose secondary is there have no later copy then.
func (f *findings) full(l admin.Location) {
	var full []string
	for _, n := range l.Nodes {
		if n.DiskFull {
			full = append(full, n.Name)
		}
	}
	if len(full) == 0 {
		return
	}
	severity, into := ofQuorum(l, full), ""
	if l.Peer != "" {
		into = fmt.Sprintf("; nothing is replicated from %s", l.Peer)
		if slices.ContainsFunc(f.status.Accounts, func(a admin.AccountStatus) bool { return a.Secondary == l.Name }) {
			severity = Critical
		}
	}
	f.add(severity, "docs/runbooks/disk-nearly-full.md", "%s: disk full on %s: no writes there; reads go on%s", l.Name, strings.Join(full, ", "), into)
}

const leaderPage = "docs/runbooks/range-without-leader.md"

// Leaderless names the ranges of a location without a leader, which none is elected for; empty for none.
func Leaderless(l admin.Location) string {
	none, _ := unled(l)
	if Down(l) || len(none) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: no leader of range %s", l.Name, strings.Join(none, ", "))
}

// leaderless finds ranges without a leader, which none is elected for.
func (f *findings) leaderless(l admin.Location) {
	if none := Leaderless(l); none != "" {
		f.add(Critical, leaderPage, "%s: requests for it are answered 503", none)
	}
}

// ranges finds ranges without a leader, and with too few replicas.
func (f *findings) ranges(l admin.Location) {
	var few []string
	absent := map[string]bool{}
	for _, r := range l.Ranges {
		if v := r.LeaderView; v != nil && v.InSyncReplicas < r.ConfiguredReplicas {
			few = append(few, rangeName(r))
			for _, s := range v.Standings {
				absent[s.Node] = absent[s.Node] || !s.InSync
			}
		}
	}
	f.leaderless(l)
	if _, electing := unled(l); len(electing) > 0 {
		f.add(Warning, "wait some seconds; if it lasts: "+leaderPage, "%s: a leader is being elected for range %s: requests for it wait", l.Name, strings.Join(electing, ", "))
	}
	if len(few) == 0 {
		return
	}
	for _, n := range l.Nodes { // A node that is found to be away, full or off needs no second line: waiting does not help it.
		if n.State != admin.Running || n.DiskFull || n.ClockOff != "" {
			delete(absent, n.Name)
		}
	}
	var names []string
	for name, is := range absent {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > 0 {
		f.add(Warning, "antipodectl node wait-in-sync "+names[0], "%s: replicas are not in sync, on %s: range %s", l.Name, strings.Join(names, ", "), strings.Join(few, ", "))
	}
}

func rangeName(r admin.Range) string { return fmt.Sprintf("%d %s", r.Range, r.Service) }

// unled names the ranges of a location without a leader, and those that elect one.
func unled(l admin.Location) (none, electing []string) {
	for _, r := range l.Ranges {
		switch {
		case r.LeaderView != nil:
		case r.Electing != nil && *r.Electing:
			electing = append(electing, rangeName(r))
		default:
			none = append(none, rangeName(r))
		}
	}
	return none, electing
}

// unseen finds changes that wait for a location which the answering port does not show: its own lag is not known here.
func (f *findings) unseen(l admin.Location) {
	if !slices.Contains(NotShown(f.status), l.Peer) {
		return
	}
	oldest := 0.0
	for _, r := range l.Ranges {
		if r.LeaderView != nil {
			oldest = max(oldest, r.BacklogAgeSeconds)
		}
	}
	if oldest > Late.Seconds() {
		f.add(Warning, "docs/runbooks/last-sync-time-behind.md", "%s: changes have waited more than %s for %s, which this port does not show", l.Name, Late, l.Peer)
	}
}

// NotShown are the locations that the answering port does not show, which says nothing of whether they serve: the port of a node
// shows its own location alone.
func NotShown(s admin.Status) (names []geo.Location) {
	for _, l := range s.Locations {
		if l.Peer != "" && !slices.ContainsFunc(s.Locations, func(o admin.Location) bool { return o.Name == l.Peer }) {
			names = append(names, l.Peer)
		}
	}
	return names
}

// link finds that an operator has cut or delayed the link. Over one that is cut nothing is replicated.
func (f *findings) link() {
	what := fmt.Sprintf("the link between the locations is %s, by an operator", f.status.Link.State)
	switch f.status.Link.State {
	case admin.LinkCut:
		f.add(Critical, linkHeal, "%s: nothing is replicated, and a failover would lose what is written meanwhile", what)
	case admin.LinkDelayed:
		f.add(Warning, linkHeal, "%s", what)
	}
}

const linkHeal = "antipodectl link heal"

// Count words a number of things; what is the word for one of them.
func Count[N int | int64 | uint64](n N, what string) string {
	stem, y := strings.CutSuffix(what, "y")
	switch {
	case n == 1:
		return "1 " + what
	case y && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeiou"):
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Are is the verb of so many things.
func Are[N int | int64 | uint64](n N) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// some names the first accounts of a list.
func some(of []geo.Account) string {
	const most = 5
	var names []string
	for _, a := range of[:min(len(of), most)] {
		names = append(names, string(a))
	}
	out := strings.Join(names, ", ")
	if n := len(of) - most; n > 0 {
		out += fmt.Sprintf(" and %d more", n)
	}
	return out
}
