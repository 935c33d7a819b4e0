package node

import (
	"antipode/geo"
	"antipode/stamp/ranges"
	"antipode/stamp/scrub"
	"antipode/stamp/state"
)

// What the tests in node_test see of a node beside its exported methods.

const (
	InboxBytesMax = inboxBytesMax
	InboxMax      = inboxMax
	ClaimsMax     = claimsMax
	PinFactor     = pinFactor
	ReserveBytes  = reserveBytes
	RoomMore      = roomMore
	PlacementFile = placementFile

	MsgHello     = msgHello
	MsgHelloResp = msgHelloResp
	MsgDurable   = msgDurable
	MsgLost      = msgLost
	MsgGiven     = msgGiven
	MsgLeads     = msgLeads
)

var (
	ErrSender   = errSender
	StampRanges = stampRanges
	WorkOf      = (*Node).onScheduler
	CheckRoom   = (*Node).checkRoom
	Refetch     = (*Node).refetch
	Claim       = (*Node).claim
	Claimed     = (*Node).claimed
	HearLeads   = (*Node).hearLeads
	RecoveryIn  = (*Node).recovery
	Condemn     = (*Node).condemn
)

func (n *Node) Inbox() []Envelope                                    { return n.inbox }
func (n *Node) Log(id geo.RangeID) state.RangeLog                    { return n.logs[id] }
func (n *Node) State() *state.Store                                  { return n.state }
func (n *Node) Placement() *ranges.Placement                         { return &n.placement }
func (n *Node) Has() []geo.RangeID                                   { return n.has }
func (n *Node) Opts() Options                                        { return n.o }
func (n *Node) Differ() map[geo.NodeID]bool                          { return n.differ }
func (n *Node) Led() map[geo.RangeID]bool                            { return n.led }
func (n *Node) Ranges() []*ranges.Range                              { return n.ranges }
func (n *Node) Claims() map[geo.RangeID]map[geo.ReplicaID]geo.NodeID { return n.claims }
func (n *Node) Scrubber() *scrub.Scrubber                            { return n.scrubber }
func (n *Node) ScrubOptions() scrub.Options                          { return n.scrubOptions() }

// Identity is the phase in which a replica here is, and its id.
func (n *Node) Identity(id geo.RangeID) ReplicaIdentity {
	return ReplicaIdentity{n.identities[id].phase.String(), n.identities[id].replica}
}

// BeginRecovery writes that the replica is being re-formed under a later recovery.
func (n *Node) BeginRecovery(id geo.RangeID, as geo.ReplicaID) error {
	return n.become(id, recovering, as)
}

// Silent reports whether a peer was not heard for so long that stores stay.
func (n *Node) Silent(p geo.NodeID) bool { return n.ticks > n.heardAt[p]+2*retellTicks }

// FailWith takes the node out of service at its next pass.
func (n *Node) FailWith(err error) {
	n.mu.Lock()
	n.failed = err
	n.mu.Unlock()
	n.Wake()
}
