package blobs

import (
	"antipode/geo"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Conditions are the conditional headers of a request.
type Conditions interface {
	// Read tests the conditions of a read. modified is the last change of what is read.
	Read(modified geo.Timestamp) error
	// Write tests the conditions of a write. It is called at evaluation, while nothing else
	// writes the blob, so that test and write are one step. creates means that the operation
	// creates a missing blob. modified is meaningful if the blob exists.
	Write(creates, exists bool, modified geo.Timestamp) error
}

// Guard is what a request requires of a blob or a container before it is read or written.
type Guard struct {
	// Conditions may be nil, and so may Tags, the condition on the tags of a blob.
	Conditions Conditions
	Tags       *TagCondition
	// Lease is the one that the request names; nil for none. LeaseNeeded: without it the request is refused while there is
	// one that is locked.
	Lease       *lease.ID
	LeaseNeeded bool
	// CreateOnly: the writer may create a blob, and not overwrite one (protocol/auth.md 20).
	CreateOnly bool
	// Early: the version of the request is older than append blobs.
	Early bool
	// now is what the leader's clock shows, by which leases end.
	now geo.Timestamp
}

// InTime implements services.Timed.
func (g *Guard) InTime(now geo.Timestamp) { g.now = now }

// State is what a guard is tested against: the last change of a blob or a container, its lease, and the tags of a blob.
type State struct {
	Modified geo.Timestamp
	Lease    lease.Lease
	Tags     []Pair
}

// Check tests the guard of a read, for a container or a blob: the conditions, then the lease (protocol/blob.md 2.6). at is now.
func (g *Guard) Check(s State, at geo.Timestamp, errs lease.Errors) error {
	if !g.Tags.Holds(s.Tags) { // It is 412, which goes before a 304.
		return storageerr.ConditionNotMet
	}
	if g.Conditions != nil {
		if err := g.Conditions.Read(s.Modified); err != nil {
			return err
		}
	}
	return s.Lease.Check(g.Lease, g.LeaseNeeded, at, errs)
}

// Knows refuses an append blob where the version of the request has none.
func (g *Guard) Knows(b *Blob) error {
	if g.Early && b.Appended != nil {
		return storageerr.AppendBlobTooNew
	}
	return nil
}

// check is Check for a write, after InTime.
func (g *Guard) check(creates, exists bool, s State, errs lease.Errors) error {
	if g.CreateOnly && creates && exists {
		return storageerr.UnauthorizedBlobOverwrite
	}
	if g.Conditions != nil {
		if err := g.Conditions.Write(creates, exists, s.Modified); err != nil {
			return err
		}
	}
	if !g.Tags.Holds(s.Tags) {
		return storageerr.ConditionNotMet
	}
	return s.Lease.Check(g.Lease, g.LeaseNeeded, g.now, errs)
}

// Command holds what the write commands on one blob have in common.
type Command struct {
	Name Name
	Guard

	// Modified is a result: the commit time, if the command changes the blob's ETag.
	Modified geo.Timestamp
	// Left is a result: rows are dead now, see Dead.
	Left bool
}

// Partition implements services.Write.
func (c *Command) Partition() keys.Partition { return c.Name.Partition() }

// Gone implements services.Write.
func (c *Command) Gone() error { return storageerr.ContainerNotFound }

// check tests the guard on the blob, which is zero if it does not exist, and settles its tier.
func (c *Command) check(creates, exists bool, b *Blob) error {
	b.SettleTier(c.now)
	if err := c.Knows(b); err != nil {
		return err
	}
	return c.Guard.check(creates, exists, State{b.Modified, b.Lease, b.Tags}, lease.OfBlob())
}

// replaced reads the blob that a command makes or replaces, under its guard; with blocks it is none but a block blob. Its lease
// is what the write leaves of it. An archived blob is not replaced.
func (c *Command) replaced(get kv.Getter, blocks bool) (old Blob, err error) {
	old, exists, err := lookup(get, c.Name)
	switch {
	case err != nil:
		return old, err
	case blocks && old.Appended != nil:
		return old, storageerr.InvalidBlobType
	}
	if err := c.check(true, exists, &old); err != nil {
		return old, err
	}
	if err := old.Online(); err != nil {
		return old, err
	}
	old.Lease = old.Lease.Written(c.now)
	return old, nil
}
