package replica

import (
	"slices"
	"time"

	"antipode/geo"
)

// With each message of its leader a follower promises to let no other replica lead for
// ElectionTicks: leases rely on that (R5). The ticks of two nodes may differ by one, so the
// promises of all followers have ended one tick later. Then the followers campaign one after the
// other, far enough apart that one that can win leads before the next one campaigns: two that
// campaign at once split the votes. Raft's own randomized timer is not used, because its
// randomness cannot be injected.

// campaignSpacing is how many ticks after a follower the next one campaigns: longer than a round
// of votes, which are synced to disk.
const campaignSpacing = 3

// firstWait is how many ticks the first election of a stamp waits at most: no promise has to end before it.
const firstWait = 25

// resetElection begins to wait again. If no leader is known, as after an election that no
// replica won, the wait is drawn at random.
func (r *Replica) resetElection() {
	r.elapsed = 0
	switch {
	case r.fresh: // The first election of a stamp need not wait: no replica holds a lease.
		r.drawn = 1 + r.o.Rand.IntN(min(r.o.ElectionTicks, firstWait))
	case r.rn == nil: // Just started: see quiet.
		r.drawn = r.campaignAfter(0)
	default:
		r.drawn = r.o.ElectionTicks/2 + r.o.Rand.IntN(r.o.ElectionTicks)
	}
}

// campaignAfter is how many ticks after the last message of leader lead the replica campaigns;
// lead is 0 if it does not know the leader.
func (r *Replica) campaignAfter(lead geo.ReplicaID) int {
	return r.o.ElectionTicks + 1 + campaignSpacing*r.members.campaignRank(r.o.ID, lead, int(r.o.Range))
}

// mustCampaign reports whether it is time to campaign.
func (r *Replica) mustCampaign(now time.Duration) bool {
	if r.quiet(now) || r.o.Leaving() {
		return false
	}
	lead := geo.ReplicaID(r.rn.BasicStatus().Lead)
	if lead == 0 {
		return r.elapsed >= r.drawn
	}
	return r.elapsed > r.o.ElectionTicks && r.elapsed >= r.campaignAfter(lead)
}

// campaignRank is the position of id, from 0, in the order in which the voters other than lead
// campaign. The order of each range begins with another voter, by rotate, so that different nodes
// take over the ranges of a node that is gone.
func (m Members) campaignRank(id, lead geo.ReplicaID, rotate int) int {
	voters := slices.DeleteFunc(m.Voters(), func(v Member) bool { return v.ID == lead })
	i := slices.IndexFunc(voters, func(v Member) bool { return v.ID == id })
	if i < 0 {
		return len(voters)
	}
	return (i + rotate) % len(voters)
}

// FollowsLeader reports whether a message of the leader came within an election timeout, in ticks. If this replica leads
// it is false.
func (r *Replica) FollowsLeader() bool {
	return r.lost == nil && !r.IsLeader() && r.rn.BasicStatus().Lead != 0 && r.elapsed <= r.o.ElectionTicks
}

// quiet reports whether the replica restarted so lately that it neither votes nor campaigns: a
// leader may hold a lease that relies on what the replica promised before (R5).
func (r *Replica) quiet(now time.Duration) bool {
	return !r.fresh && now-r.started < time.Duration(r.o.ElectionTicks)*r.o.Tick
}

// Tick advances Raft's time by one tick. The scheduler calls it at most once a
// pass and never to catch up: a lease relies on ticks that are not shorter than Options.Tick.
func (r *Replica) Tick(now time.Duration) {
	if r.lost != nil {
		return
	}
	r.tickUnapplied()
	if r.IsLeader() {
		r.rn.Tick()
		r.inSync.update(r.rn, now, r.ran(now))
		return
	}
	r.rn.TickQuiesced()
	r.elapsed++
	if r.mustCampaign(now) {
		r.resetElection()
		if err := r.rn.Campaign(); err != nil {
			r.o.Logger.Warn("cannot campaign", "range", r.o.Range, "error", err)
		}
	}
}
