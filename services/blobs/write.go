package blobs

import (
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/kv"
)

// PutBlob is Put Blob: it makes or replaces a whole block blob, or an append blob without content (protocol/blob.md B8).
// Its chunks are durable before it is submitted (R3).
type PutBlob struct {
	Command
	// Blob is what is stored. Modified and Created are set at evaluation, and TierDefault leaves
	// an overwritten blob its tier. The range may still read the command after its caller stopped
	// waiting, so its memory is not reused.
	Blob Blob
	// Append makes it an append blob. Blob has no payload then, and no tier.
	Append bool
}

// Admit tests the guard on the state that get shows, without a write, so that a large
// body can be refused before it is read. Evaluate tests again.
func (w *PutBlob) Admit(get kv.Getter, now geo.Timestamp) error {
	w.InTime(now)
	_, err := w.admit(get)
	return err
}

// admit reads the blob that is replaced. One with snapshots keeps its type (protocol/blob.md B8).
func (w *PutBlob) admit(get kv.Getter) (old Blob, err error) {
	old, err = w.replaced(get, false)
	if err == nil && old.Snapshots.Count > 0 && w.Append != (old.Appended != nil) {
		err = storageerr.SnapshotsPresent
	}
	return old, err
}

// Evaluate implements services.Write.
func (w *PutBlob) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	old, err := w.admit(get)
	if err != nil {
		return services.Effect{}, err
	}
	b := w.Blob
	b.replaces(&old, at)
	if w.Append {
		b.Appended, b.Tier = &Appended{Session: at}, TierDefault
	}
	effect, err := b.effect()
	if err != nil {
		return services.Effect{}, err
	}
	effect.Ops, err = endBlocks(effect.Ops, get, w.Name, &old)
	w.Modified, w.Left, effect.Chunks = at, len(effect.Ops) > 1 || old.InRows(), b.Chunks
	return effect, err
}

// replaces sets what new content takes over from the blob that it replaces, of which the lease was asked before.
func (b *Blob) replaces(old *Blob, at geo.Timestamp) {
	b.Modified, b.Created, b.Lease, b.Snapshots = at, at, old.Lease, old.Snapshots
	if plantedbugs.Planted(plantedbugs.LeaseOverwritten) {
		b.Lease = lease.Lease{}
	}
	if b.Tier == TierDefault {
		b.Tier = old.Tier
	}
}

// endBlocks appends the end of a blob's uncommitted blocks and of its committed list.
func endBlocks(ops []change.Op, get kv.Getter, n Name, old *Blob) ([]change.Op, error) {
	_, _, there, err := GetStaging(get, n, 0)
	if err != nil {
		return nil, err
	}
	return discard(ops, old, there), nil
}

// WithSnapshots is what Delete Blob does with snapshots.
type WithSnapshots byte

// The values of x-ms-delete-snapshots, and its absence.
const (
	SnapshotsRefuse  WithSnapshots = 0
	SnapshotsInclude WithSnapshots = 1
	SnapshotsOnly    WithSnapshots = 2
)

// DeleteBlob is Delete Blob (protocol/blob.md B26): nothing of the blob is left, or its snapshots alone go.
type DeleteBlob struct {
	Command
	Snapshots WithSnapshots
	// Uncommitted: a blob that has only uncommitted blocks may be deleted too (versions
	// from 2013-08-15 on).
	Uncommitted bool
	// Tier are conditions on the change of the tier; nil for none.
	Tier Conditions
}

// Deletes implements services.Deletion.
func (w *DeleteBlob) Deletes() bool { return true }

// Evaluate implements services.Write.
func (w *DeleteBlob) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	old, exists, err := lookup(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	var ops []change.Op
	if exists {
		ops = append(ops, change.Op{Delete: true, Row: row()})
	} else if _, live, _, err := GetStaging(get, w.Name, at); err != nil || !live || !w.Uncommitted || w.Snapshots == SnapshotsOnly {
		if err == nil {
			err = storageerr.BlobNotFound
		}
		return services.Effect{}, err
	}
	if err := w.check(false, exists, &old); err != nil {
		return services.Effect{}, err
	}
	if err := w.checkTier(w.Tier, exists, &old); err != nil {
		return services.Effect{}, err
	}
	snapshots := old.Snapshots.Count > 0
	switch {
	case snapshots && w.Snapshots == SnapshotsRefuse && !plantedbugs.Planted(plantedbugs.SnapshotsPassed):
		return services.Effect{}, storageerr.SnapshotsPresent
	case w.Snapshots == SnapshotsOnly && exists:
		w.Left, old.Snapshots = snapshots, Snapshots{}
		return old.effect()
	}
	committed := len(ops)
	ops, err = endBlocks(ops, get, w.Name, &old)
	w.Left = len(ops) > committed || snapshots || old.InRows()
	return services.Effect{Ops: ops}, err
}

// SetMetadata is Set Blob Metadata (protocol/blob.md B4): it replaces all of it.
type SetMetadata struct {
	Command
	// Metadata is what is stored; nothing clears it.
	Metadata []Pair
}

// Evaluate implements services.Write.
func (w *SetMetadata) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	return w.rewrite(get, at, func(b *Blob) { b.Metadata = w.Metadata })
}

// SetProperties is Set Blob Properties of a block blob (protocol/blob.md B5): the content
// properties and the MD5 are replaced together.
type SetProperties struct {
	Command
	Properties Properties
	// MD5 is stored unchecked; nil clears it.
	MD5 []byte
}

// Evaluate implements services.Write.
func (w *SetProperties) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	return w.rewrite(get, at, func(b *Blob) { b.Properties, b.MD5 = w.Properties, w.MD5 })
}

// rewrite changes the description of a blob and leaves its payload. The change names no chunks. The
// row's chunks came with an earlier change of the same partition, which every replica has applied
// before this one (R3). Naming them again would send them to the other location again.
func (c *Command) rewrite(get kv.Getter, at geo.Timestamp, set func(*Blob)) (services.Effect, error) {
	b, err := GetBlob(get, c.Name)
	if err != nil {
		return services.Effect{}, err
	}
	if err := c.check(false, true, &b); err != nil {
		return services.Effect{}, err
	}
	if err := b.Online(); err != nil {
		return services.Effect{}, err
	}
	if plantedbugs.Planted(plantedbugs.SealForgotten) && b.Appended != nil {
		b.Appended.Sealed = false
	}
	set(&b)
	b.Modified, b.Lease, b.Copied = at, b.Lease.Written(c.now), nil
	c.Modified = at
	return b.effect()
}
