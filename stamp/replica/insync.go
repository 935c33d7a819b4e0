package replica

import (
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/room"
)

// inSyncMin is how many replicas must hold an entry before it is acknowledged (R2).
const inSyncMin = 2

// inSync is the leader's view of which replicas must hold an entry before it is
// acknowledged: all that answer in time, inSyncMin at least. Silence is measured in the running
// time of this process (clock.Running), here called ran: what a replica answered while the
// process stood still could not be received. A new leader counts every replica as in sync and
// takes out those that do not answer. The silence of its predecessor, because of which it
// stood for election, counts from the predecessor's last message.
type inSync struct {
	// timeout is Options.InSyncTimeout.
	timeout time.Duration
	// least is inSyncMin, or one with Options.Alone.
	least int
	// reachable reports whether a connection to a node stands; nil for every node.
	reachable func(geo.NodeID) bool
	log       *slog.Logger
	// moved is called with every replica that leaves or returns. May be nil.
	moved func(n geo.NodeID, in bool)
	// room is Options.Room, and self this leader.
	room func(geo.NodeID) room.Level
	self geo.ReplicaID
	// peers are the voters, this leader among them.
	peers []peer
	// decided is the monotonic time of the last decide.
	decided time.Duration
}

// peer is one voter as the leader sees it.
type peer struct {
	id   geo.ReplicaID
	node geo.NodeID
	// match is the index up to which it has persisted the log.
	match uint64
	// out: it is not in sync.
	out bool
	// since is when it came in or went out, as far as this leader knows, in monotonic time; 0
	// before the first decide. The times below are running times.
	since time.Duration
	// behind is an index that the peer has not reached since behindSince; 0 means that the
	// last decide found it at the end of the log.
	behind      uint64
	behindSince time.Duration
	// took is how long it was behind before it reached an index, the last time or now: see Standing.
	took time.Duration
	// silentSince is when it last sent anything before this term; 0 means unknown.
	silentSince time.Duration
}

func (s *inSync) init(o Options) {
	s.timeout, s.reachable = o.InSyncTimeout, o.Reachable
	s.least = inSyncMin
	if o.Alone {
		s.least = 1
	}
	s.room, s.self = o.Room, o.ID
	if s.room == nil {
		s.room = func(geo.NodeID) room.Level { return room.Plenty }
	}
	s.log, s.moved = o.Logger.With("range", o.Range), o.OnInSync
}

// configure takes over the voters of a configuration. A new voter is in sync at once: it was
// promoted because it keeps up.
func (s *inSync) configure(m Members) {
	old := s.peers
	s.peers = nil
	for _, r := range m.List {
		if r.Learner {
			continue
		}
		p := peer{id: r.ID, node: r.Node}
		if i := slices.IndexFunc(old, func(p peer) bool { return p.id == r.ID }); i >= 0 {
			p = old[i]
		}
		s.peers = append(s.peers, p)
	}
}

// reset counts every replica as in sync, as a new leader does. The last message of the
// predecessor came at the running time lastSeen; predecessor is 0 for none.
func (s *inSync) reset(predecessor geo.ReplicaID, lastSeen time.Duration) {
	for i := range s.peers {
		s.peers[i] = peer{id: s.peers[i].id, node: s.peers[i].node}
		if s.peers[i].id == predecessor {
			s.peers[i].silentSince = lastSeen
		}
	}
}

// update reads the Match of the peers from Raft and moves them in or out.
func (s *inSync) update(rn *raft.RawNode, now, ran time.Duration) {
	rn.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		for i := range s.peers {
			if s.peers[i].id == geo.ReplicaID(id) {
				s.peers[i].match = pr.Match
			}
		}
	})
	s.decide(now, ran)
}

// decide moves peers in or out by what they have persisted.
func (s *inSync) decide(now, ran time.Duration) {
	s.decided = now
	var last uint64
	for _, p := range s.peers {
		last = max(last, p.match)
	}
	for i := range s.peers {
		p := &s.peers[i]
		if p.since == 0 {
			p.since = now
		}
		if p.behind != 0 && p.match >= p.behind {
			// It reached what was the end of the log a moment ago. Under load no replica is
			// ever seen at the very end.
			p.took = ran - p.behindSince
			if p.out && ran-p.behindSince < s.timeout/2 {
				s.rejoin(p, now)
			}
			p.behind = 0
		}
		switch {
		case p.match >= last:
			p.behind, p.silentSince = 0, 0
			if p.out {
				s.rejoin(p, now)
			}
		case p.behind == 0:
			p.behind, p.behindSince = last, ran
			if p.silentSince != 0 {
				p.behindSince, p.silentSince = p.silentSince, 0
			}
		case !p.out && s.missed(p, ran-p.behindSince):
			s.move(p, false, now)
			s.log.Warn("replica does not answer and left the in-sync set; writes go on with the others",
				"node", p.node, "at", p.match, "want", p.behind)
		}
		if p.behind != 0 {
			p.took = max(p.took, ran-p.behindSince)
		}
	}
	s.leaveFull(now)
}

// leaveFull takes the replicas whose disks are nearly full out of the in-sync set, so that the range goes on without
// them. Where the others are too few they stay, or come back: the range then takes what a full disk takes. The leader
// itself stays; see Cramped.
func (s *inSync) leaveFull(now time.Duration) {
	for i := range s.peers {
		if p := &s.peers[i]; !p.out && s.excess(p) {
			s.move(p, false, now)
			s.log.Warn("the disk of a replica is nearly full: it left the in-sync set; writes go on with the others", "node", p.node)
		}
	}
}

// excess reports whether a replica has no room, and is not needed.
func (s *inSync) excess(p *peer) bool {
	return p.id != s.self && s.room(p.node) != room.Plenty && s.roomy(0) >= s.least
}

// roomy is how many in-sync replicas other than one have room.
func (s *inSync) roomy(other geo.ReplicaID) (n int) {
	for _, p := range s.peers {
		if !p.out && p.id != other && s.room(p.node) == room.Plenty {
			n++
		}
	}
	return n
}

// unreachablePart divides the timeout for a replica whose node is not reachable: what remains
// is time to make a broken connection again.
const unreachablePart = 5

// missed reports whether a replica has been behind for too long.
func (s *inSync) missed(p *peer, behind time.Duration) bool {
	return behind > s.timeout || behind > s.timeout/unreachablePart && s.reachable != nil && !s.reachable(p.node)
}

func (s *inSync) rejoin(p *peer, now time.Duration) {
	if s.excess(p) {
		return
	}
	s.move(p, true, now)
	s.log.Info("replica is in sync again", "node", p.node, "index", p.match)
}

func (s *inSync) move(p *peer, in bool, now time.Duration) {
	p.out, p.since = !in, now
	if s.moved != nil {
		s.moved(p.node, in)
	}
}

// count is how many replicas are in sync.
func (s *inSync) count() int {
	n := 0
	for _, p := range s.peers {
		if !p.out {
			n++
		}
	}
	return n
}

// index is the greatest index that every in-sync replica has persisted; zero while there are
// fewer than they must be, since nothing is acknowledged then.
func (s *inSync) index() uint64 {
	if s.count() < s.least {
		return 0
	}
	least := ^uint64(0)
	for _, p := range s.peers {
		if plantedbugs.Planted(plantedbugs.AckAtQuorum) && p.match < s.quorum() {
			continue
		}
		if !p.out {
			least = min(least, p.match)
		}
	}
	return least
}

// quorum is the index that a majority has persisted: enough to commit, not to acknowledge.
// Only the planted bug AckAtQuorum uses it.
func (s *inSync) quorum() uint64 {
	matches := make([]uint64, 0, len(s.peers))
	for _, p := range s.peers {
		matches = append(matches, p.match)
	}
	slices.Sort(matches)
	return matches[(len(matches)-1)/2]
}

// InSync returns how many replicas are in sync as this leader sees it.
func (r *Replica) InSync() int {
	if !r.IsLeader() {
		return 0
	}
	return r.inSync.count()
}

// FewInSync reports whether fewer replicas are in sync, as this leader sees it, than must hold what is acknowledged.
func (r *Replica) FewInSync() bool { return r.InSync() < r.inSync.least }

// Room is how much room there is for what this leader proposes: the least of its disk and of those of the replicas that
// it needs, which are all while too few are in sync.
func (r *Replica) Room() room.Level {
	s := &r.inSync
	level, few := s.room(r.o.Node), s.count() < s.least
	for _, p := range s.peers {
		if !p.out || few {
			level = max(level, s.room(p.node))
		}
	}
	return level
}

// Cramped returns the nodes of in-sync replicas that have room, if this one, which leads, has none and they are enough to
// take writes without it.
func (r *Replica) Cramped() (roomy []geo.NodeID) {
	s := &r.inSync
	if !r.IsLeader() || s.room(r.o.Node) == room.Plenty || s.roomy(r.o.ID) < s.least {
		return nil
	}
	for _, p := range s.peers {
		if !p.out && p.id != s.self && s.room(p.node) == room.Plenty {
			roomy = append(roomy, p.node)
		}
	}
	return roomy
}

// AckIndex is the greatest index that may be acknowledged: every in-sync replica has persisted
// it.
func (r *Replica) AckIndex(now time.Duration) uint64 {
	if !r.IsLeader() {
		return 0
	}
	r.inSync.update(r.rn, now, r.ran(now))
	return r.inSync.index()
}

// InSyncNodes are the in-sync replicas as this leader sees them; nil elsewhere.
func (r *Replica) InSyncNodes() []geo.NodeID {
	if !r.IsLeader() {
		return nil
	}
	var out []geo.NodeID
	for _, p := range r.inSync.peers {
		if !p.out {
			out = append(out, p.node)
		}
	}
	return out
}

// Standing is whether a leader counts one of its replicas as in sync.
type Standing struct {
	Node   geo.NodeID
	InSync bool
	// Since is when the replica came into the in-sync set or left it, in monotonic time: at the
	// earliest when the leader began to lead.
	Since time.Duration
	// Took is for how long the replica lacked what the leader had, the last time that it did or, if that is
	// longer, now. A leader answers no sooner than its slowest in-sync replica.
	Took time.Duration
}

// Standings are the standings of all voters as this leader sees them; nil elsewhere.
func (r *Replica) Standings() []Standing {
	if !r.IsLeader() {
		return nil
	}
	out := make([]Standing, 0, len(r.inSync.peers))
	for _, p := range r.inSync.peers {
		out = append(out, Standing{p.node, !p.out, p.since, p.took})
	}
	return out
}
