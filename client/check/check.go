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

// The severities. Critical: clients of a primary name are refused, or replication of an account stands until somebody acts.
// Warning: one more fault could make it so, or it may end by itself.
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
	for _, l := range s.Locations {
		f.down[l.Name] = Down(l)
	}
	for _, l := range s.Locations {
		f.location(l)
	}
	f.witness()
	f.link()
	f.operations()
	f.accounts()
	slices.SortStableFunc(f.list, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) }) // In this order by their names.
	return f.list
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
	list   []Finding
}

func (f *findings) add(s Severity, next, what string, args ...any) {
	// Errors of several nodes are lines of one text.
	f.list = append(f.list, Finding{s, strings.Join(strings.Fields(fmt.Sprintf(what, args...)), " "), next})
}

// Down reports whether no node of a location serves, as far as the status shows.
func Down(l admin.Location) bool {
	return !slices.ContainsFunc(l.Nodes, func(n admin.Node) bool { return n.State == admin.Running || n.State == admin.Starting })
}

// Serves reports whether a location can serve clients: it is not down, and leads at least one of its ranges.
func Serves(l admin.Location) bool {
	return !Down(l) && (len(l.Ranges) == 0 || slices.ContainsFunc(l.Ranges, func(r admin.Range) bool { return r.LeaderView != nil }))
}

// location finds what is wrong with a location and its nodes.
func (f *findings) location(l admin.Location) {
	if f.down[l.Name] {
		f.locationDown(l)
		return
	}
	f.nodes(l)
	f.ranges(l)
	f.epochs(l)
	f.unseen(l)
	for _, text := range l.Warnings {
		if !strings.HasPrefix(text, admin.WarnsOfEpochs) || l.Epochs == nil { // That is found, with what to do.
			f.add(Warning, "", "%s: %s", l.Name, text)
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
	what := fmt.Sprintf("%s is down: none of its %d nodes serves", l.Name, len(l.Nodes))
	if len(l.Nodes) == 0 {
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
	if served > alone {
		next = "antipodectl failover plan --location " + string(l.Name)
	}
	f.add(Critical, next, "%s", what)
}

// nodes finds nodes that do not do what they should.
func (f *findings) nodes(l admin.Location) {
	var away, full, off []string
	for _, n := range l.Nodes {
		switch n.State {
		case admin.Failed:
			f.add(Warning, "docs/runbooks/node-out-of-service.md", "%s is out of service: %s", n.Name, cmp.Or(n.OutOfService, "its log says why"))
		case admin.Unreachable, admin.Stopped:
			away = append(away, n.Name)
		}
		if n.DiskFull {
			full = append(full, n.Name)
		}
		if n.ClockOff != "" {
			off = append(off, n.Name+" ("+n.ClockOff+")")
		}
	}
	if len(away) > 0 {
		f.add(Warning, "docs/runbooks/target-down.md", "%s: %d of %d nodes do not answer: %s", l.Name, len(away), len(l.Nodes), strings.Join(away, ", "))
	}
	// Most nodes of a location make a quorum: then it takes no writes at all.
	severity := func(of []string) Severity {
		if 2*len(of) > len(l.Nodes) {
			return Critical
		}
		return Warning
	}
	if len(full) > 0 {
		into := ""
		if l.Peer != "" { // One full disk closes the stream, which has a copy on each node.
			into = fmt.Sprintf("; nothing is replicated from %s", l.Peer)
		}
		f.add(severity(full), "docs/runbooks/disk-nearly-full.md", "%s: disk full on %s: no writes there; reads go on%s", l.Name, strings.Join(full, ", "), into)
	}
	if len(off) > 0 {
		f.add(severity(off), "docs/runbooks/clock-skew.md", "%s: a clock is not believed, so the node leads no writes: %s", l.Name, strings.Join(off, "; "))
	}
}

// ranges finds ranges without a leader, and with too few replicas.
func (f *findings) ranges(l admin.Location) {
	var none, few []string
	absent := map[string]bool{}
	for _, r := range l.Ranges {
		name := fmt.Sprintf("%d %s", r.Range, r.Service)
		switch v := r.LeaderView; {
		case v == nil:
			none = append(none, name)
		case v.InSyncReplicas < r.ConfiguredReplicas:
			few = append(few, name)
			for _, s := range v.Standings {
				absent[s.Node] = absent[s.Node] || !s.InSync
			}
		}
	}
	if len(none) > 0 {
		f.add(Critical, "docs/runbooks/range-without-leader.md", "%s: no leader of range %s: requests for it are answered 503", l.Name, strings.Join(none, ", "))
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

// unseen finds changes that wait for a location which the answering port does not show: its own lag is not known here.
func (f *findings) unseen(l admin.Location) {
	if l.Peer == "" || slices.ContainsFunc(f.status.Locations, func(o admin.Location) bool { return o.Name == l.Peer }) {
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

// epochs finds a location that does not know whether it still is the primary. The witness is found by itself.
func (f *findings) epochs(l admin.Location) {
	e := l.Epochs
	if e == nil {
		return
	}
	if !e.Confirmed && !unwitnessed(e) {
		f.add(Critical, "docs/runbooks/epochs-unconfirmed.md", "%s refuses writes of accounts that have a copy: %s", l.Name, because("the other location does not answer", e.Waiting))
	}
	if n := len(e.Refused); n > 0 {
		f.add(Warning, "antipodectl account list", "%s refuses writes of %s: the other location has become the primary", l.Name, Count(n, "account"))
	}
}

// witness finds a witness that does not answer: once, for both locations.
func (f *findings) witness() {
	var refuse, lease, word []string
	why := ""
	for _, l := range f.status.Locations {
		e := l.Epochs
		switch {
		case f.down[l.Name] || e == nil || !unwitnessed(e):
			continue
		case e.Confirmed && (e.By == "override" || e.By == "policy"):
			word = append(word, string(l.Name))
		case e.Confirmed:
			lease = append(lease, string(l.Name))
		default:
			refuse = append(refuse, string(l.Name))
		}
		why = cmp.Or(why, e.Waiting)
	}
	what, severity := "the witness does not answer", Warning
	if len(refuse) > 0 {
		what, severity = fmt.Sprintf("%s: writes of accounts that have a copy are refused at %s", what, strings.Join(refuse, ", ")), Critical
	}
	if len(lease) > 0 {
		what += fmt.Sprintf("; %s: a lease still holds", strings.Join(lease, ", "))
	}
	if len(word) > 0 {
		what += fmt.Sprintf("; %s: writes go on without a lease, by an operator's word", strings.Join(word, ", "))
	}
	if len(refuse)+len(lease)+len(word) > 0 {
		f.add(severity, "docs/runbooks/witness.md", "%s", because(what, why))
	}
}

// unwitnessed reports whether a location has a witness that gave it no lease last.
func unwitnessed(e *admin.Epochs) bool { return e.Witness && (!e.Confirmed || e.Waiting != "") }

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + " (" + why + ")"
}

// link finds that an operator has cut or delayed the link.
func (f *findings) link() {
	if l := f.status.Link; l.State == admin.LinkCut || l.State == admin.LinkDelayed {
		f.add(Warning, "antipodectl link heal", "the link between the locations is %s, by an operator", l.State)
	}
}

// Count words a number of things.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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
