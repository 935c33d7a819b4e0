package blobs

import (
	"antipode/geo"
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
	// Conditions may be nil.
	Conditions Conditions
	// LeaseSent: the request named a lease. Nothing has one yet.
	LeaseSent bool
	// CreateOnly: the writer may create a blob, and not overwrite one (protocol/auth.md 20).
	CreateOnly bool
}

// CheckRead tests conditions, then the lease: the order of protocol/blob.md 2.6 for blobs and
// containers. modified is the last change of what is read. unleased is the error for a request
// that names a lease, since nothing is leased yet.
func (g *Guard) CheckRead(modified geo.Timestamp, unleased storageerr.Row) error {
	if g.Conditions != nil {
		if err := g.Conditions.Read(modified); err != nil {
			return err
		}
	}
	return g.checkLease(unleased)
}

// check is CheckRead for a write.
func (g *Guard) check(creates, exists bool, modified geo.Timestamp, unleased storageerr.Row) error {
	if g.CreateOnly && creates && exists {
		return storageerr.UnauthorizedBlobOverwrite
	}
	if g.Conditions != nil {
		if err := g.Conditions.Write(creates, exists, modified); err != nil {
			return err
		}
	}
	return g.checkLease(unleased)
}

func (g *Guard) checkLease(unleased storageerr.Row) error {
	if g.LeaseSent {
		return unleased
	}
	return nil
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

// check tests the guard on the blob; modified is meaningful if the blob exists.
func (c *Command) check(creates, exists bool, modified geo.Timestamp) error {
	return c.Guard.check(creates, exists, modified, storageerr.LeaseNotPresentOnBlob)
}

// replaced reads the blob that a command makes or replaces, under its guard.
func (c *Command) replaced(get kv.Getter) (old Blob, err error) {
	old, exists, err := lookup(get, c.Name)
	if err != nil {
		return old, err
	}
	return old, c.check(true, exists, old.Modified)
}
