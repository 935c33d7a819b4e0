package sim

import (
	"antipode/services/blobs"
	"antipode/services/lease"
)

// leaseIDs is how many clients want the lease of a blob.
const leaseIDs = 3

// leaseBlob does something to the lease of a blob.
func (s *Sim) leaseBlob(a *account, n blobs.Name, done func()) {
	r := lease.Request{Action: lease.Acquire, ID: s.drawLease(), Seconds: lease.DurationMin}
	switch s.rng.IntN(6) {
	case 0:
		r = lease.Request{Action: lease.Renew, ID: r.ID}
	case 1, 2:
		r = lease.Request{Action: lease.Release, ID: r.ID}
	case 3:
		r = lease.Request{Action: lease.Break, Period: new(uint32)}
	}
	s.submitBlob(s.newOp(a, &blobs.LeaseBlob{Command: blobs.Command{Name: n}, Request: r}), done)
}

func (s *Sim) drawLease() lease.ID { return lease.ID{byte(1 + s.rng.IntN(leaseIDs))} }

// guarded is the guard of a write of a blob: mostly with the lease that the client takes to be held.
func (s *Sim) guarded(n blobs.Name, a *account) blobs.Command {
	c := blobs.Command{Name: n, Guard: blobs.Guard{LeaseNeeded: true}}
	if held := a.home.history[s.blobRange()].twin(n.Partition()).lease; held.Kind != lease.KindNone && s.chance(0.8) {
		c.Lease = &held.ID
	}
	return c
}

// tookUnderLease: by the clocks of the leaders a lease has one holder at a time until its end, whatever happens to
// leaders and locations, and nobody else writes the blob meanwhile.
func (h *history) tookUnderLease(t *blobTwin, o *op) {
	now := o.numbered.now
	locked := t.lease.State(now).Locked()
	var guard *blobs.Guard
	switch w := o.write.(type) {
	case *blobs.LeaseBlob:
		h.s.counts.Leased++
		if locked && w.Request.Action != lease.Break && w.Request.ID != t.lease.ID {
			h.fail(ErrLease, "%x took effect on %s at %s, held is %s", w.Request.ID[0], w.Name.Blob, now, t.lease.Describe())
		}
		t.lease = w.Lease
		return
	case *blobs.PutBlob:
		guard = &w.Guard
	case *blobs.PutBlock:
		guard = &w.Guard
	case *blobs.PutBlockList:
		guard = &w.Guard
	case *blobs.SetMetadata:
		guard = &w.Guard
	case *blobs.AppendBlock:
		guard = &w.Guard
	case *blobs.Seal:
		guard = &w.Guard
	case *blobs.CopyBlob:
		guard = &w.Guard
	case *blobs.DeleteBlob:
		guard = &w.Guard
	default:
		return
	}
	if locked && (guard.Lease == nil || *guard.Lease != t.lease.ID) {
		h.fail(ErrLease, "write %d took effect at %s without the lease %s", o.id, now, t.lease.Describe())
	}
	if locked {
		h.s.counts.WrittenUnderLease++
	}
	switch w := o.write.(type) {
	case *blobs.PutBlock:
	case *blobs.DeleteBlob:
		if t.lease = t.lease.Written(now); w.Snapshots != blobs.SnapshotsOnly {
			t.lease = lease.Lease{}
		}
	default:
		t.lease = t.lease.Written(now)
	}
}
