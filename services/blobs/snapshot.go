package blobs

import (
	"encoding/binary"
	"fmt"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/kv"
)

// snapshotRowLen is the length of a snapshot's key within the partition, in bytes.
const snapshotRowLen = 17

// snapshotRow is the key of a snapshot within its blob's partition.
func snapshotRow(first, at geo.Timestamp) []byte {
	b := binary.BigEndian.AppendUint64([]byte{rowSnapshot}, uint64(first))
	return binary.BigEndian.AppendUint64(b, uint64(at))
}

// GetSnapshot reads a snapshot of a blob; BlobNotFound if there is none.
func GetSnapshot(get kv.Getter, n Name, at geo.Timestamp) (Blob, error) {
	b, err := GetBlob(get, n)
	if err != nil {
		return Blob{}, err
	}
	return b.snapshot(get, n, at)
}

// snapshot reads a snapshot of the blob.
func (b *Blob) snapshot(get kv.Getter, n Name, at geo.Timestamp) (Blob, error) {
	if b.Snapshots.Count == 0 {
		return Blob{}, storageerr.BlobNotFound
	}
	v, ok, err := get.Get(n.keyOf(snapshotRow(b.Snapshots.First, at)))
	if err != nil {
		return Blob{}, err
	}
	if !ok {
		return Blob{}, storageerr.BlobNotFound
	}
	s, err := parseRow(v)
	if err != nil {
		return Blob{}, fmt.Errorf("snapshot %s of blob %q in container %q of %s: %w", at, n.Blob, n.Container, n.Account, err)
	}
	return s, nil
}

// SnapshotBlob is Snapshot Blob (protocol/blob.md B21). It costs a row, whatever the length of the blob: the snapshot names
// the payload that the blob names. The blob keeps its ETag.
type SnapshotBlob struct {
	Command
	// Metadata replaces that of the blob in the snapshot; none keeps it.
	Metadata []Pair
	// Snapshot is a result: the time that names the snapshot. Modified is that of the snapshot.
	Snapshot geo.Timestamp
}

// Evaluate implements services.Write. The change names no chunks, as that of rewrite.
func (w *SnapshotBlob) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	b, err := GetBlob(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	if err := w.check(false, true, &b); err != nil {
		return services.Effect{}, err
	}
	if err := b.Online(); err != nil {
		return services.Effect{}, err
	}
	s := b
	s.Lease, s.Snapshots = lease.Lease{}, Snapshots{}
	if len(w.Metadata) > 0 {
		s.Metadata, s.Modified = w.Metadata, at
	}
	value, err := appendRow(nil, &s)
	if err != nil {
		return services.Effect{}, err
	}
	if b.Snapshots.Count == 0 {
		b.Snapshots.First = at
		if plantedbugs.Planted(plantedbugs.SnapshotsRevived) {
			b.Snapshots.First = 1
		}
	}
	b.Snapshots.Last = at
	b.Snapshots.Count++
	w.Snapshot, w.Modified = at, s.Modified
	effect, err := b.effect()
	effect.Ops = append(effect.Ops, change.Op{Row: snapshotRow(b.Snapshots.First, at), Value: value})
	return effect, err
}

// DeleteSnapshot is Delete Blob of one snapshot (protocol/blob.md B26). The blob's lease does not protect it.
type DeleteSnapshot struct {
	Command
	Snapshot geo.Timestamp
	// Tier are conditions on the change of the tier; nil for none.
	Tier Conditions
}

// Deletes implements services.Deletion.
func (w *DeleteSnapshot) Deletes() bool { return true }

// Evaluate implements services.Write.
func (w *DeleteSnapshot) Evaluate(get kv.Getter, _ geo.Timestamp) (services.Effect, error) {
	b, err := GetBlob(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	s, err := b.snapshot(get, w.Name, w.Snapshot)
	if err != nil {
		return services.Effect{}, err
	}
	if err := w.check(false, true, &s); err != nil {
		return services.Effect{}, err
	}
	if err := w.checkTier(w.Tier, true, &s); err != nil {
		return services.Effect{}, err
	}
	key := snapshotRow(b.Snapshots.First, w.Snapshot)
	if b.Snapshots.Count--; b.Snapshots.Count == 0 {
		b.Snapshots = Snapshots{}
	}
	w.Left = s.InRows()
	effect, err := b.effect()
	effect.Ops = append(effect.Ops, change.Op{Delete: true, Row: key})
	return effect, err
}

// InRows reports whether the payload is in other rows of the partition.
func (b *Blob) InRows() bool { return b.List != nil || b.Appended != nil }

// shares reports whether a snapshot may name the rows that the blob's payload is in: one was made since they are.
func (b *Blob) shares() bool {
	return b.List != nil && b.List.ID <= b.Snapshots.Last || b.Appended != nil && b.Appended.Session <= b.Snapshots.Last
}
