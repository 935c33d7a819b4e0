package node

import (
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
)

// view is what one process knows of its location.
type view struct {
	// Location has this node alone, and what the leaders here know of their ranges.
	Location wire.Location `json:"location"`
	Link     wire.Link     `json:"link"`
	// Accounts have their services where the process is the one that can tell.
	Accounts []wire.AccountStatus `json:"accounts"`
}

// merge makes one view of a location out of those of its processes, the first being that
// of the process that asked.
func merge(views []view) view {
	out := views[0]
	out.Location.Alarms = map[string]uint64{}
	for i, v := range views {
		for reason, n := range v.Location.Alarms {
			out.Location.Alarms[reason] += n
		}
		if i == 0 {
			continue
		}
		out.Location.Nodes = append(out.Location.Nodes, v.Location.Nodes...)
		if v.Location.State == wire.Running {
			out.Location.State = wire.Running
		}
		for k, r := range v.Location.Ranges {
			if r.LeaderView != nil && k < len(out.Location.Ranges) {
				out.Location.Ranges[k].LeaderView = r.LeaderView
			}
		}
		for _, w := range v.Location.Warnings {
			if !slices.Contains(out.Location.Warnings, w) {
				out.Location.Warnings = append(out.Location.Warnings, w)
			}
		}
		for _, a := range v.Accounts {
			at := slices.IndexFunc(out.Accounts, func(o wire.AccountStatus) bool { return o.Name == a.Name })
			if at < 0 {
				out.Accounts = append(out.Accounts, a)
			} else if len(a.Services) > 0 {
				out.Accounts[at].Services = a.Services
			}
		}
		if v.Link.State != wire.LinkUp {
			out.Link = v.Link
		}
	}
	slices.SortFunc(out.Location.Nodes, func(a, b wire.Node) int { return compareNodes(a.Name, b.Name) })
	out.markInSync()
	return out
}

// compareNodes orders node names by number.
func compareNodes(a, b string) int {
	_, x, _ := wire.ParseNodeName(a) // Ours, so they parse.
	_, y, _ := wire.ParseNodeName(b)
	return int(x) - int(y)
}

// markInSync tells each replica what its leader, which may be in another process, says.
func (v *view) markInSync() {
	in := map[geo.RangeID]map[string]bool{}
	for _, r := range v.Location.Ranges {
		in[r.Range] = map[string]bool{}
		if r.LeaderView != nil {
			for _, s := range r.Standings {
				in[r.Range][s.Node] = s.InSync
			}
		}
	}
	for _, n := range v.Location.Nodes {
		for k := range n.Replicas {
			n.Replicas[k].InSync = in[n.Replicas[k].Range][n.Name]
		}
	}
}
