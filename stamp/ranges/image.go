package ranges

import (
	"bytes"
	"errors"
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/state"
)

// ImageStep is the outcome of a step of an image.
type ImageStep struct {
	// Image is how far the image is after the step.
	Image change.Image
	// Took is what this step has copied.
	Took change.ImageSize
	// Uncounted: the step did nothing, since the image has not begun in the epoch.
	Uncounted bool
	// Held: the step did nothing, since too much waits for the other location.
	Held bool
	// Applied: the other location has applied all of it.
	Applied bool
}

// Image returns how far the image of an account's rows is, groups in flight included; the zero value if
// none has begun.
func (tx *Tx) Image(a geo.Account) (change.Image, error) {
	return imageIn(tx, keys.Image(tx.Range(), a))
}

// ImageIn returns how far the image of an account's rows in a range is, in a view of a state store.
func ImageIn(g kv.Getter, id geo.RangeID, a geo.Account) (change.Image, error) {
	return imageIn(g, keys.Image(id, a))
}

func imageIn(g kv.Getter, key []byte) (change.Image, error) {
	v, ok, err := g.Get(key)
	if err != nil || !ok {
		return change.Image{}, err
	}
	return change.ParseImage(v)
}

// SetImage stages how far the image of an account's rows is.
func (tx *Tx) SetImage(a geo.Account, m change.Image) {
	tx.b.Image(a, m)
	delete(tx.r.imaged, a)
	tx.overlay(string(keys.Image(tx.Range(), a)), overlayValue{value: change.AppendImage(nil, m)})
}

// AwaitImage stages that an image of an account's rows follows in an epoch whose changes have numbers from this group on:
// what was written in the epoch before has none, and the other location does not have it.
func (tx *Tx) AwaitImage(a geo.Account, e geo.Epoch) {
	tx.SetImage(a, change.Image{Epoch: geo.Epoch{Number: e.Number}})
}

// Awaits reports whether m is what AwaitImage has staged for an epoch, and the image has not begun since.
func Awaits(m change.Image, e geo.Epoch) bool { return m.Epoch == geo.Epoch{Number: e.Number} }

func (m *Machine) applyImage(batch *state.Batch, body []byte) error {
	a, i, err := change.ParseImagePart(body)
	if err != nil {
		return err
	}
	return batch.Set(keys.Image(m.id, a), change.AppendImage(nil, i))
}

// Acknowledged returns the last record of a stream that the other location has acknowledged: those up to
// it have left the outbox.
func (tx *Tx) Acknowledged(s geo.Stream) geo.Seq { return tx.r.Machine.Trimmed(s) }

// imaged is what the other location had acknowledged of an account in an epoch, at the last step of its image.
type imaged struct {
	epoch geo.Epoch
	acked change.Volume
}

// AckedSinceImage returns what the other location has acknowledged of an account's present streams since the last
// SetImage, or the first call after it in this process.
func (tx *Tx) AckedSinceImage(a geo.Account) change.Volume {
	now := imaged{epoch: tx.Gate(a).Epoch}
	now.acked, _ = tx.r.Machine.volumes(a, now.epoch)
	since := tx.r.imaged[a]
	if since.epoch != now.epoch {
		if tx.r.imaged == nil {
			tx.r.imaged = map[geo.Account]imaged{}
		}
		tx.r.imaged[a], since = now, now
	}
	return change.Volume{Bytes: now.acked.Bytes - since.acked.Bytes, Payload: now.acked.Payload - since.acked.Payload}
}

// Waiting returns what the outbox holds of an account's present streams, that of groups in flight not
// included.
func (tx *Tx) Waiting(a geo.Account) change.Volume {
	return tx.r.Machine.Waiting(a, tx.Gate(a).Epoch)
}

// Waiting returns what the outbox holds of an account's streams of an epoch.
func (m *Machine) Waiting(a geo.Account, e geo.Epoch) change.Volume {
	acked, all := m.volumes(a, e)
	return change.Volume{Bytes: all.Bytes - acked.Bytes, Payload: all.Payload - acked.Payload}
}

// volumes returns what the other location has acknowledged of an account's streams of an epoch, and all that they had.
func (m *Machine) volumes(a geo.Account, e geo.Epoch) (acked, all change.Volume) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for lane := range geo.Lane(geo.LaneCount) {
		trimmed, head := m.outbox.Ends(geo.Stream{Account: a, Epoch: e, Range: m.id, Lane: lane})
		acked = change.Volume{Bytes: acked.Bytes + trimmed.Bytes, Payload: acked.Payload + trimmed.Payload}
		all = change.Volume{Bytes: all.Bytes + head.Bytes, Payload: all.Payload + head.Payload}
	}
	return acked, all
}

// Rows implements kv.Walker: the rows as this command sees them. f must not stage anything.
func (tx *Tx) Rows(from, end []byte, f func(key, value []byte) bool) (err error) {
	staged := tx.stagedIn(from, end)
	it, err := tx.r.o.State.Scan(from, end)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	more := it.Next()
	for more || len(staged) > 0 {
		if len(staged) == 0 || more && bytes.Compare(it.Key(), []byte(staged[0])) < 0 {
			if !tx.wiped(it.Key()) && !f(bytes.Clone(it.Key()), bytes.Clone(it.Value())) {
				return nil
			}
			more = it.Next()
			continue
		}
		key := staged[0]
		staged = staged[1:]
		v, is := tx.r.overlay[key]
		if !is {
			continue // The state below has it, or never had.
		}
		if more && string(it.Key()) == key {
			more = it.Next()
		}
		if !v.deleted && !f([]byte(key), v.value) {
			return nil
		}
	}
	return nil
}

// stagedIn returns the keys of [from, end) that groups in flight change, in order, and perhaps keys that they do not.
func (tx *Tx) stagedIn(from, end []byte) (out []string) {
	if tx.r.staged != nil {
		return tx.r.staged.within(string(from), string(end))
	}
	for k := range tx.r.overlay {
		if k >= string(from) && k < string(end) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
