package membership

import (
	"antipode/geo"
	"antipode/stamp/replica"
)

// Whole reports whether the replica here is a voter of the configuration that holds its data.
func (m *Machine) Whole(members replica.Members, lost error) bool {
	own, ok := members.On(m.o.Node)
	return m.id.Phase == Member && lost == nil && ok && own.ID == m.id.Replica && !own.Learner
}

// OthersWhole reports whether the other replicas of the range are voters that no node reported
// lost, on nodes that were active lately.
func (m *Machine) OthersWhole(members replica.Members, active func(geo.NodeID) bool) bool {
	for _, p := range m.others() {
		other, ok := members.On(p)
		if !ok || other.Learner || m.reported[p] == other.ID || !active(p) {
			return false
		}
	}
	return true
}
