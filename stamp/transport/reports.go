package transport

import (
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/replica"
	"antipode/stamp/room"
	"antipode/stamp/skew"
)

// On the wire a message of package membership has the form of one of Raft's, of a type outside
// Raft's numbers: that is what nodes of earlier versions read. From is the number of the
// sender's node.
//
//	type                    Index             LogTerm     Reject
//	1000 DurableIndex       Index             Replica
//	1001 Hello              Nonce             Placement
//	1002 HelloAnswer        Asked             Nonce       Known
//	1003 LossReport         Replica           Nonce
//	1004 RecoveryReport     an id of it
//	1005 OtherPlacement     Placement
//	1006 LeaderHint         Term
//	1007 LastID             Replica           Nonce
//	1008 ClockQuestion      Sent
//	1009 ClockAnswer        Sent              Wall        sure      Held, in Commit; Leapt, in RejectHint
//	1010 RoomReport         Level
//	1011 LogMark            Index             Term                  Replica, in Commit; In, in RejectHint
const (
	typeDurableIndex   = pb.MessageType(1000)
	typeHello          = pb.MessageType(1001)
	typeHelloAnswer    = pb.MessageType(1002)
	typeLossReport     = pb.MessageType(1003)
	typeRecoveryReport = pb.MessageType(1004)
	typeOtherPlacement = pb.MessageType(1005)
	typeLeaderHint     = pb.MessageType(1006)
	typeLastID         = pb.MessageType(1007)
	typeClockQuestion  = pb.MessageType(1008)
	typeClockAnswer    = pb.MessageType(1009)
	typeRoomReport     = pb.MessageType(1010)
	typeLogMark        = pb.MessageType(1011)
)

// reportOnWire returns the form that a report of node from has on the wire.
func reportOnWire(from geo.NodeID, report membership.Message) *pb.Message {
	var typ pb.MessageType
	var index, logTerm, commit, hint uint64
	var reject bool
	switch r := report.(type) {
	case membership.DurableIndex:
		typ, index, logTerm = typeDurableIndex, r.Index, uint64(r.Replica)
	case membership.Hello:
		typ, index, logTerm = typeHello, uint64(r.Nonce), uint64(r.Placement)
	case membership.HelloAnswer:
		typ, index, logTerm, reject = typeHelloAnswer, uint64(r.Asked), uint64(r.Nonce), r.Known
	case membership.LossReport:
		typ, index, logTerm = typeLossReport, uint64(r.Replica), uint64(r.Nonce)
	case membership.RecoveryReport:
		typ, index = typeRecoveryReport, uint64(r.Recovery.None())
	case membership.OtherPlacement:
		typ, index = typeOtherPlacement, uint64(r.Placement)
	case membership.LeaderHint:
		typ, index = typeLeaderHint, r.Term
	case membership.LastID:
		typ, index, logTerm = typeLastID, uint64(r.Replica), uint64(r.Nonce)
	case membership.ClockQuestion:
		typ, index = typeClockQuestion, uint64(r.Sent)
	case membership.ClockAnswer:
		typ, index, logTerm, commit = typeClockAnswer, uint64(r.Sent), uint64(r.Wall), uint64(r.Held)
		reject, hint = !r.Unsure, uint64(r.Leapt) // An earlier version sets neither, and proves nothing.
	case membership.RoomReport:
		typ, index = typeRoomReport, uint64(r.Level)
	case membership.LogMark:
		typ, index, logTerm, commit, hint = typeLogMark, r.Index, r.Term, uint64(r.Replica), r.In
	default:
		panic(fmt.Sprintf("transport: no wire form of %T", report))
	}
	sender := uint64(from)
	m := &pb.Message{Type: &typ, From: &sender, Index: &index, LogTerm: &logTerm, Reject: &reject}
	if commit != 0 {
		m.Commit = &commit
	}
	if hint != 0 {
		m.RejectHint = &hint
	}
	return m
}

// reportFromWire returns the report that a message is; nil for one of Raft's, or of a type
// that this version does not know.
func reportFromWire(m *pb.Message) membership.Message {
	switch m.GetType() {
	case typeDurableIndex:
		return membership.DurableIndex{Replica: geo.ReplicaID(m.GetLogTerm()), Index: m.GetIndex()}
	case typeHello:
		return membership.Hello{Nonce: membership.Nonce(m.GetIndex()), Placement: membership.PlacementSum(m.GetLogTerm())}
	case typeHelloAnswer:
		return membership.HelloAnswer{Asked: membership.Nonce(m.GetIndex()), Nonce: membership.Nonce(m.GetLogTerm()), Known: m.GetReject()}
	case typeLossReport:
		return membership.LossReport{Replica: geo.ReplicaID(m.GetIndex()), Nonce: membership.Nonce(m.GetLogTerm())}
	case typeRecoveryReport:
		return membership.RecoveryReport{Recovery: replica.RecoveryOf(geo.ReplicaID(m.GetIndex()))}
	case typeOtherPlacement:
		return membership.OtherPlacement{Placement: membership.PlacementSum(m.GetIndex())}
	case typeLeaderHint:
		return membership.LeaderHint{Term: m.GetIndex()}
	case typeLastID:
		return membership.LastID{Replica: geo.ReplicaID(m.GetIndex()), Nonce: membership.Nonce(m.GetLogTerm())}
	case typeClockQuestion:
		return membership.ClockQuestion{Question: skew.Question{Sent: time.Duration(m.GetIndex())}}
	case typeClockAnswer:
		return membership.ClockAnswer{Answer: skew.Answer{
			Sent: time.Duration(m.GetIndex()), Wall: int64(m.GetLogTerm()), Held: time.Duration(m.GetCommit()),
			Unsure: !m.GetReject(), Leapt: time.Duration(m.GetRejectHint()),
		}}
	case typeRoomReport:
		return membership.RoomReport{Level: room.Level(min(m.GetIndex(), uint64(room.Spent)))}
	case typeLogMark:
		return membership.LogMark{Replica: geo.ReplicaID(m.GetCommit()), Index: m.GetIndex(), Term: m.GetLogTerm(), In: m.GetRejectHint()}
	}
	return nil
}
