package blobs

import (
	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Conditions are the conditional headers of a write. They are asked at evaluation,
// with the blob held still, so that test and write are one step. Creates says that
// the operation makes the blob when it is missing; modified counts if it exists.
type Conditions interface {
	Write(creates, exists bool, modified geo.Timestamp) error
}

// PutBlob is Put Blob: it makes or replaces a whole block blob (protocol/blob.md B8).
// Whoever submits it has made the chunks durable (R3).
type PutBlob struct {
	Name Name
	// Conditions may be nil.
	Conditions Conditions
	// LeaseSent says that the request named a lease. No blob has one yet.
	LeaseSent bool
	// Blob is what is stored. Modified and Created are set at evaluation, and
	// TierDefault leaves an overwritten blob its tier. The command may still be read
	// after a wait for it was given up, so nothing in here is used again.
	Blob Blob

	// Modified is a result.
	Modified geo.Timestamp
	// Left is a result: rows are dead now, see Dead.
	Left bool
}

// Partition implements services.Write.
func (w *PutBlob) Partition() keys.Partition { return w.Name.Partition() }

// Gone implements services.Write.
func (w *PutBlob) Gone() error { return storageerr.ContainerNotFound }

// Admit tests the conditions on the state that get shows, without a write: a front
// end refuses a large body before it takes it. Evaluate tests again.
func (w *PutBlob) Admit(get kv.Getter) error {
	_, err := w.admit(get)
	return err
}

func (w *PutBlob) admit(get kv.Getter) (old Blob, err error) {
	old, exists, err := lookup(get, w.Name)
	if err != nil {
		return old, err
	}
	return old, permit(w.Conditions, w.LeaseSent, true, exists, old.Modified)
}

// Evaluate implements services.Write.
func (w *PutBlob) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	old, err := w.admit(get)
	if err != nil {
		return services.Effect{}, err
	}
	b := w.Blob
	b.Modified, b.Created = at, at
	if b.Tier == TierDefault {
		b.Tier = old.Tier
	}
	value, err := appendRow(make([]byte, 0, headerLen+256+len(b.Inline)+len(b.Chunks)*refLen), &b)
	if err != nil {
		return services.Effect{}, err
	}
	ops, err := endBlocks([]change.Op{{Row: row(), Value: value}}, get, w.Name, old.List)
	w.Modified, w.Left = at, len(ops) > 1
	return services.Effect{Ops: ops, Chunks: b.Chunks}, err
}

// endBlocks appends the end of a blob's uncommitted blocks and of its committed list.
func endBlocks(ops []change.Op, get kv.Getter, n Name, old *BlockList) ([]change.Op, error) {
	_, _, there, err := GetStaging(get, n, 0)
	if err != nil {
		return nil, err
	}
	return discard(ops, old, there), nil
}

// DeleteBlob is Delete Blob (protocol/blob.md B26): nothing of the blob is left.
type DeleteBlob struct {
	Name Name
	// Conditions may be nil.
	Conditions Conditions
	// LeaseSent says that the request named a lease. No blob has one yet.
	LeaseSent bool
	// Uncommitted says that a blob of which there are only uncommitted blocks may be
	// deleted too (versions from 2013-08-15 on).
	Uncommitted bool

	// Left is a result: rows are dead now, see Dead.
	Left bool
}

// Partition implements services.Write.
func (w *DeleteBlob) Partition() keys.Partition { return w.Name.Partition() }

// Gone implements services.Write.
func (w *DeleteBlob) Gone() error { return storageerr.ContainerNotFound }

// Evaluate implements services.Write.
func (w *DeleteBlob) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	old, exists, err := lookup(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	var ops []change.Op
	if exists {
		ops = append(ops, change.Op{Delete: true, Row: row()})
	} else if _, live, _, err := GetStaging(get, w.Name, at); err != nil || !live || !w.Uncommitted {
		if err == nil {
			err = storageerr.BlobNotFound
		}
		return services.Effect{}, err
	}
	if err := permit(w.Conditions, w.LeaseSent, false, exists, old.Modified); err != nil {
		return services.Effect{}, err
	}
	committed := len(ops)
	ops, err = endBlocks(ops, get, w.Name, old.List)
	w.Left = len(ops) > committed
	return services.Effect{Ops: ops}, err
}

// SetMetadata is Set Blob Metadata (protocol/blob.md B4): it replaces all of it.
type SetMetadata struct {
	Name Name
	// Conditions may be nil.
	Conditions Conditions
	// LeaseSent says that the request named a lease. No blob has one yet.
	LeaseSent bool
	// Metadata is what is stored; nothing clears it.
	Metadata []Pair

	// Modified is the result.
	Modified geo.Timestamp
}

// Partition implements services.Write.
func (w *SetMetadata) Partition() keys.Partition { return w.Name.Partition() }

// Gone implements services.Write.
func (w *SetMetadata) Gone() error { return storageerr.ContainerNotFound }

// Evaluate implements services.Write.
func (w *SetMetadata) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	w.Modified = at
	return rewriteRow(get, w.Name, w.Conditions, w.LeaseSent, at, func(b *Blob) { b.Metadata = w.Metadata })
}

// SetProperties is Set Blob Properties of a block blob (protocol/blob.md B5): the content
// properties and the MD5 are replaced together.
type SetProperties struct {
	Name Name
	// Conditions may be nil.
	Conditions Conditions
	// LeaseSent says that the request named a lease. No blob has one yet.
	LeaseSent  bool
	Properties Properties
	// MD5 is stored unchecked; nil clears it.
	MD5 []byte

	// Modified is the result.
	Modified geo.Timestamp
}

// Partition implements services.Write.
func (w *SetProperties) Partition() keys.Partition { return w.Name.Partition() }

// Gone implements services.Write.
func (w *SetProperties) Gone() error { return storageerr.ContainerNotFound }

// Evaluate implements services.Write.
func (w *SetProperties) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	w.Modified = at
	return rewriteRow(get, w.Name, w.Conditions, w.LeaseSent, at, func(b *Blob) { b.Properties, b.MD5 = w.Properties, w.MD5 })
}

// rewriteRow changes what is said of a blob and leaves its payload. The change names
// no chunks: those of the row came with an earlier change of the same partition, which
// every replica has applied before this one (R3), and naming them again would send
// them to the other location again.
func rewriteRow(get kv.Getter, n Name, c Conditions, leaseSent bool, at geo.Timestamp, set func(*Blob)) (services.Effect, error) {
	b, err := GetBlob(get, n)
	if err != nil {
		return services.Effect{}, err
	}
	if err := permit(c, leaseSent, false, true, b.Modified); err != nil {
		return services.Effect{}, err
	}
	set(&b)
	b.Modified = at
	value, err := appendRow(nil, &b)
	if err != nil {
		return services.Effect{}, err
	}
	return services.Effect{Ops: []change.Op{{Row: row(), Value: value}}}, nil
}

// permit tests conditions, then the lease: the order of protocol/blob.md 2.6.
func permit(c Conditions, leaseSent, creates, exists bool, modified geo.Timestamp) error {
	if c != nil {
		if err := c.Write(creates, exists, modified); err != nil {
			return err
		}
	}
	if leaseSent {
		return storageerr.LeaseNotPresentOnBlob
	}
	return nil
}
