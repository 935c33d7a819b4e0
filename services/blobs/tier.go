package blobs

import (
	"cmp"
	"time"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// SettleTier makes b the blob of a time of the clock: a rehydration that is over has changed its tier. Nothing is written
// when one ends, so a tier is settled before it is looked at.
func (b *Blob) SettleTier(now geo.Timestamp) {
	if t := b.Tiering; t.To != TierDefault && t.Until <= now {
		b.Tier, b.Tiering = t.To, Tiering{Changed: t.Until}
	}
}

// Online refuses what an archived blob does not allow, after SettleTier: to read or to change its content, or what
// describes it.
func (b *Blob) Online() error {
	switch {
	case b.Tier != TierArchive:
		return nil
	case b.Tiering.To != TierDefault:
		return storageerr.BlobBeingRehydrated
	}
	return storageerr.BlobArchived
}

// TierChanged is when the tier was last set, also by the write that made the blob; zero if nobody chose one.
func (b *Blob) TierChanged() geo.Timestamp {
	if b.Tiering.Changed == 0 && b.Tier != TierDefault {
		return b.Created
	}
	return b.Tiering.Changed
}

// checkTier tests conditions of a deletion on when the blob got its tier, or was made if nobody chose one; of nil there are none.
func (c *Command) checkTier(of Conditions, exists bool, b *Blob) error {
	if of == nil {
		return nil
	}
	return of.Write(false, exists, cmp.Or(b.TierChanged(), b.Created))
}

// SetTier is Set Blob Tier (protocol/blob.md B28) of a blob, or of one snapshot. It leaves ETag and Last-Modified.
type SetTier struct {
	Command
	// Snapshot is zero for the blob.
	Snapshot geo.Timestamp
	// Tier is not TierDefault.
	Tier Tier
	// High is the priority of a rehydration, and Rehydration how long one takes that begins now.
	High        bool
	Rehydration time.Duration
	// Accepted is a result: the blob was archived, and gets the tier later.
	Accepted bool
}

// Evaluate implements services.Write.
func (w *SetTier) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	b, err := GetBlob(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	key := row()
	if w.Snapshot != 0 {
		key = snapshotRow(b.Snapshots.First, w.Snapshot)
		if b, err = b.snapshot(get, w.Name, w.Snapshot); err != nil {
			return services.Effect{}, err
		}
	}
	if b.Appended != nil {
		return services.Effect{}, storageerr.InvalidBlobType
	}
	if err := w.check(false, true, &b); err != nil {
		return services.Effect{}, err
	}
	if w.Accepted, err = b.setTier(w, at); err != nil {
		return services.Effect{}, err
	}
	return b.effectAt(key)
}

// setTier changes the tier by the table of protocol/blob.md B28. accepted: by a rehydration.
func (b *Blob) setTier(w *SetTier, at geo.Timestamp) (accepted bool, err error) {
	t := &b.Tiering
	switch {
	case t.To != TierDefault && t.To != w.Tier:
		return false, storageerr.BlobBeingRehydrated
	case t.To != TierDefault:
		t.Changed, t.High = at, t.High || w.High // It ends when it was to end.
	case b.Tier == TierArchive && w.Tier != TierArchive:
		*t = Tiering{Changed: at, To: w.Tier, High: w.High, Until: geo.TimestampOf(w.now.Time().Add(w.Rehydration))}
		b.SettleTier(w.now)
	default:
		b.Tier, *t = w.Tier, Tiering{Changed: at}
		return false, nil
	}
	return true, nil
}
