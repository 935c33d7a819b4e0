package operator

import (
	"cmp"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Status is what a process, or all processes of a location, know of the location and the
// accounts. Processes of one location send it to each other as JSON: never rename a field.
type Status struct {
	// Location has the nodes of the process alone, and a leader's view of each range that is
	// led there.
	Location wire.Location `json:"location"`
	Link     wire.Link     `json:"link"`
	// Accounts have their services where the process can compute them.
	Accounts []wire.AccountStatus `json:"accounts"`
}

// Merge makes one status of a location out of those of its processes. The first is that of
// the process that was asked.
func Merge(processes []Status) Status {
	out := processes[0]
	out.Location.Alarms, out.Location.AlarmsRaised = map[string]uint64{}, map[string]wire.Time{}
	for i, s := range processes {
		for reason, n := range s.Location.Alarms {
			out.Location.Alarms[reason] += n
		}
		for reason, at := range s.Location.AlarmsRaised {
			if at.After(out.Location.AlarmsRaised[reason].Time) {
				out.Location.AlarmsRaised[reason] = at
			}
		}
		if i == 0 {
			continue
		}
		out.Location.Nodes = append(out.Location.Nodes, s.Location.Nodes...)
		out.Location.Clones = append(out.Location.Clones, s.Location.Clones...)
		out.Location.Levels = higher(out.Location.Levels, s.Location.Levels)
		out.Location.Failover = cmp.Or(out.Location.Failover, s.Location.Failover)
		out.Location.Epochs = mergeEpochs(out.Location.Epochs, s.Location.Epochs)
		out.Location.State = furthest(out.Location.State, s.Location.State)
		for k, r := range s.Location.Ranges {
			if k < len(out.Location.Ranges) {
				mergeRanges(&out.Location.Ranges[k], r)
			}
		}
		for _, w := range s.Location.Warnings {
			if !slices.Contains(out.Location.Warnings, w) {
				out.Location.Warnings = append(out.Location.Warnings, w)
			}
		}
		out.Accounts = mergeAccounts(out.Accounts, s.Accounts)
		out.Link = mergeLinks(out.Link, s.Link)
	}
	slices.SortFunc(out.Location.Nodes, func(a, b wire.Node) int { return compareNodes(a.Name, b.Name) })
	out.markInSync()
	return out
}

// higher returns the levels of the process that has applied more of the catalog: they only rise.
func higher(a, b *wire.Levels) *wire.Levels {
	if a == nil || b != nil && (b.Floor > a.Floor || b.Active > a.Active) {
		return b
	}
	return a
}

// mergeRanges adds what another process knows of a range. A leader ends every election. One replica that has been without a
// leader for long outweighs one that has just started, and would wait for one in any case.
func mergeRanges(to *wire.Range, r wire.Range) {
	if r.LeaderView != nil {
		to.LeaderView = r.LeaderView
	}
	switch {
	case to.LeaderView != nil:
		to.Electing = nil
	case to.Electing == nil || r.Electing != nil && !*r.Electing:
		to.Electing = r.Electing
	}
}

// mergeEpochs returns the worse of the epochs of two processes, with the nodes of both: writes are refused at the leaders in
// a process that has not confirmed them, whatever another one has.
func mergeEpochs(a, b *wire.Epochs) *wire.Epochs {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := *a
	if a.Confirmed && !b.Confirmed {
		out.Confirmed, out.By = false, ""
	}
	out.Waiting = cmp.Or(a.Waiting, b.Waiting)
	out.PartedSeconds = max(a.PartedSeconds, b.PartedSeconds)
	out.UnconfirmedNodes = slices.Concat(a.UnconfirmedNodes, b.UnconfirmedNodes)
	out.WaitingNodes = slices.Concat(a.WaitingNodes, b.WaitingNodes)
	for _, r := range b.Refused {
		if !slices.ContainsFunc(out.Refused, func(have wire.RefusedEpoch) bool { return have.Account == r.Account }) {
			out.Refused = append(slices.Clip(out.Refused), r)
		}
	}
	return &out
}

// furthest returns the state of a location of which one process is in state a and another in b.
func furthest(a, b wire.State) wire.State {
	for _, s := range []wire.State{wire.Running, wire.Starting} {
		if a == s || b == s {
			return s
		}
	}
	return a
}

// mergeAccounts adds accounts to a list. The services of an account are those of the status
// that has them: only the process that receives can compute them. So is what a bootstrap has copied,
// and why an operation waits.
func mergeAccounts(to, more []wire.AccountStatus) []wire.AccountStatus {
	known := byName(to)
	for _, a := range more {
		at, is := known[a.Name]
		if !is {
			known[a.Name] = len(to)
			to = append(to, a)
			continue
		}
		if len(a.Services) > 0 {
			to[at].Services = a.Services
		}
		if to[at].Operation == "" || to[at].Epoch != a.Epoch {
			continue
		}
		if to[at].Copied == nil {
			to[at].Copied = a.Copied
		}
		to[at].OperationWaits = cmp.Or(to[at].OperationWaits, a.OperationWaits)
	}
	return to
}

// mergeLinks returns the state of the link seen from two ends. Everything passes both ends, so one
// that is cut outweighs one that is delayed, and of two delays the longer one shows.
func mergeLinks(a, b wire.Link) wire.Link {
	if a.State != wire.LinkCut && (b.State == wire.LinkCut || b.State == wire.LinkDelayed && b.DelaySeconds > a.DelaySeconds) {
		return b
	}
	return a
}

// compareNodes orders node names by number.
func compareNodes(a, b string) int {
	_, x, _ := wire.ParseNodeName(a) // Ours, so they parse.
	_, y, _ := wire.ParseNodeName(b)
	return int(x) - int(y)
}

// markInSync sets for each replica whether its leader, which may be in another process,
// counts it in sync.
func (s *Status) markInSync() {
	in := map[geo.RangeID]map[string]bool{}
	for _, r := range s.Location.Ranges {
		in[r.Range] = map[string]bool{}
		if r.LeaderView != nil {
			for _, v := range r.Standings {
				in[r.Range][v.Node] = v.InSync
			}
		}
	}
	for _, n := range s.Location.Nodes {
		for k := range n.Replicas {
			n.Replicas[k].InSync = in[n.Replicas[k].Range][n.Name]
		}
	}
}
