package node

import (
	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/room"
)

func (n *Node) roomOptions() room.Options {
	return room.Options{
		FS: n.o.State.FS, Dir: n.o.Dir, ReserveBytes: n.o.ReserveBytes, Node: n.o.ID, Peers: n.o.Peers,
		Send: func(to geo.NodeID, l room.Level) {
			n.o.Transport.Send(n.o.ID, to, []Envelope{{Report: membership.RoomReport{Level: l}}})
		},
		Changed: func(full bool, reason string) {
			n.event(Event{Kind: map[bool]EventKind{true: DiskFull, false: DiskHasRoom}[full], Node: n.o.ID, Reason: reason})
		},
		Removed: func(reason string) { n.event(Event{Kind: AsideRemoved, Node: n.o.ID, Reason: reason}) },
		Logger:  n.o.Logger,
	}
}
