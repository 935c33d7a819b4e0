package operator

import (
	"cmp"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
)

// mergeStatus makes one status of a location out of those of its processes. Each has the nodes of its process alone, and a
// leader's view of each range that is led there. The first is that of the process that was asked.
func mergeStatus(processes []wire.Status) wire.Status {
	out := processes[0]
	at := out.Locations[0]
	at.Alarms, at.AlarmsRaised = map[string]uint64{}, map[string]wire.Time{}
	for i, s := range processes {
		if len(s.Locations) != 1 {
			continue // It does not say of what it is a status.
		}
		l := s.Locations[0]
		for reason, n := range l.Alarms {
			at.Alarms[reason] += n
		}
		for reason, raised := range l.AlarmsRaised {
			if raised.After(at.AlarmsRaised[reason].Time) {
				at.AlarmsRaised[reason] = raised
			}
		}
		if i > 0 {
			mergeLocation(&at, l)
			out.Accounts = mergeAccounts(out.Accounts, s.Accounts)
			out.Link = mergeLinks(out.Link, s.Link)
		}
	}
	slices.SortFunc(at.Nodes, func(a, b wire.Node) int { return compareNodes(a.Name, b.Name) })
	markInSync(&at)
	out.Locations = []wire.Location{at}
	return out
}

// mergeLocation adds what another process knows of the location.
func mergeLocation(to *wire.Location, l wire.Location) {
	to.Nodes = append(to.Nodes, l.Nodes...)
	to.Clones = append(to.Clones, l.Clones...)
	to.Levels = higher(to.Levels, l.Levels)
	to.Failover = cmp.Or(to.Failover, l.Failover)
	to.Epochs = mergeEpochs(to.Epochs, l.Epochs)
	to.State = furthest(to.State, l.State)
	for k, r := range l.Ranges {
		if k < len(to.Ranges) {
			mergeRanges(&to.Ranges[k], r)
		}
	}
	for _, w := range l.Warnings {
		if !slices.Contains(to.Warnings, w) {
			to.Warnings = append(to.Warnings, w)
		}
	}
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
func markInSync(l *wire.Location) {
	in := map[geo.RangeID]map[string]bool{}
	for _, r := range l.Ranges {
		in[r.Range] = map[string]bool{}
		if r.LeaderView != nil {
			for _, v := range r.Standings {
				in[r.Range][v.Node] = v.InSync
			}
		}
	}
	for _, n := range l.Nodes {
		for k := range n.Replicas {
			n.Replicas[k].InSync = in[n.Replicas[k].Range][n.Name]
		}
	}
}
