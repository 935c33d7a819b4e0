package membership

import (
	"fmt"

	"antipode/geo"
	"antipode/stamp/replica"
)

var errEarlierLife = fmt.Errorf("%w: found in an earlier life", replica.ErrLost)

// lastGiven takes which id was given last. A replica that is lost may have begun one that its folder does not know any more,
// and is rebuilt under none of those. A leader of before a recovery knows less.
func (m *Machine) lastGiven(msg LastID) []Effect {
	lost := m.id.Phase == Lost && replica.RecoveryOf(msg.Replica) >= m.Recovery()
	if m.lastKnown || msg.Nonce != m.o.Life || !lost && m.id.Phase != Forgotten {
		return nil
	}
	m.lastKnown = true
	switch {
	case lost && msg.Replica <= m.id.Replica:
		return nil
	case lost:
		return []Effect{m.become(Lost, msg.Replica)}
	}
	why := "its folder is a new one; the leader reported the last id given"
	return []Effect{Report{Kind: ReplicaLost, Node: m.o.Node, Replica: msg.Replica, Reason: why}, m.become(Lost, msg.Replica)}
}

// outdated takes the replica out where another node knows of a later one here: its id became durable before it took part, so
// the folder is an older copy of itself. It is lost under the later id, which it must not be rebuilt under. Without an index
// the later one may not have begun: a replica that is lost, or missed a recovery, is then about to become it.
func (m *Machine) outdated(later LogMark, by geo.NodeID) []Effect {
	was, p := m.id.Replica, m.id.Phase
	next := later.Index == 0 && (p == Lost || replica.RecoveryOf(later.Replica) != m.Recovery())
	if p != Member && p != Lost || next {
		return nil
	}
	why := fmt.Errorf("%w: node %d knows replica %d here, which came after %d: its disk was set back", replica.ErrLost, by, later.Replica, was)
	out := []Effect{m.become(Lost, later.Replica), Lose{why}, m.forgetGroup()}
	return append(out, Report{Kind: ReplicaLost, Node: m.o.Node, Replica: later.Replica, Reason: why.Error()})
}

// wipedAgain ends a rebuild that a start went on with: the crash may have been long ago, in the life of a folder that was
// copied then, and set back since. So it asks which id was given last, as any that is lost. A crash costs one more learner.
func (m *Machine) wipedAgain() []Effect {
	return []Effect{m.become(Lost, m.id.Replica), Reopen{errEarlierLife}}
}
