package blobs

import (
	"encoding/binary"
	"fmt"

	"antipode/geo"
	"antipode/services/lease"
	"antipode/stamp/feature"
)

// Tags of fields, which stand in this order. Durable.
const (
	tagLease     = 1
	tagTiering   = 2
	tagTags      = 3
	tagSnapshots = 4
	tagCopied    = 5
	tagLast      = tagCopied
)

// field is one tagged field of a row.
type field struct {
	tag   byte
	value []byte
}

// fields are those that the blob has, by tag.
func (b *Blob) fields() (out []field) {
	if b.Lease.Kind != lease.KindNone {
		out = append(out, field{tagLease, appendLease(nil, b.Lease)})
	}
	if b.Tiering != (Tiering{}) {
		out = append(out, field{tagTiering, appendTiering(nil, b.Tiering)})
	}
	if len(b.Tags) > 0 {
		out = append(out, field{tagTags, appendPairs(nil, b.Tags)})
	}
	if b.Snapshots.Count > 0 {
		v := binary.LittleEndian.AppendUint64(nil, uint64(b.Snapshots.First))
		v = binary.LittleEndian.AppendUint64(v, uint64(b.Snapshots.Last))
		out = append(out, field{tagSnapshots, binary.AppendUvarint(v, b.Snapshots.Count)})
	}
	if b.Copied != nil {
		out = append(out, field{tagCopied, appendCopied(nil, b.Copied)})
	}
	return out
}

// tagged reports whether the blob needs the second version of the row; fields is how many it has.
func (b *Blob) tagged(fields int) bool { return fields > 0 || b.Appended != nil || b.Tier > TierCold }

// rowLevel is the feature level that a program has to know to read a row of a blob.
func rowLevel(row []byte) feature.Level {
	if len(row) > 0 && row[0] == rowTagged {
		return feature.Blobs
	}
	return feature.Base
}

// checkFields tests what the layout alone does not enforce of what is not payload.
func (b *Blob) checkFields() error {
	t := &b.Tiering
	switch {
	case b.Tier > TierArchive:
		return fmt.Errorf("%w: tier %d", ErrMalformed, b.Tier)
	case !b.Lease.Valid():
		return fmt.Errorf("%w: lease %v", ErrMalformed, b.Lease)
	case t.To == TierDefault && (t.High || t.Until != 0),
		t.To != TierDefault && (b.Tier != TierArchive || t.To >= TierArchive || t.Until == 0 || t.Changed == 0):
		return fmt.Errorf("%w: tier %d, %+v", ErrMalformed, b.Tier, *t)
	case len(b.Tags) > TagsMax:
		return fmt.Errorf("%w: %d tags", ErrMalformed, len(b.Tags))
	case b.Snapshots.Count == 0 && b.Snapshots != (Snapshots{}), b.Snapshots.Count > 0 && b.Snapshots.First == 0,
		b.Snapshots.Last < b.Snapshots.First:
		return fmt.Errorf("%w: %+v", ErrMalformed, b.Snapshots)
	}
	for i := range len(b.Tags) - 1 {
		if b.Tags[i].Name >= b.Tags[i+1].Name {
			return fmt.Errorf("%w: tag %q before %q", ErrMalformed, b.Tags[i].Name, b.Tags[i+1].Name)
		}
	}
	return nil
}

func appendLease(dst []byte, l lease.Lease) []byte {
	dst = append(append(dst, byte(l.Kind)), l.ID[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, l.Seconds)
	return binary.LittleEndian.AppendUint64(dst, uint64(l.Until))
}

func appendTiering(dst []byte, t Tiering) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.Changed))
	if t.To == TierDefault {
		return dst
	}
	high := byte(0)
	if t.High {
		high = 1
	}
	return binary.LittleEndian.AppendUint64(append(dst, byte(t.To), high), uint64(t.Until))
}

func appendPairs(dst []byte, pairs []Pair) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(pairs)))
	for _, p := range pairs {
		dst = appendText(appendText(dst, p.Name), p.Value)
	}
	return dst
}

// appendAppended appends what stands for the payload of an append blob.
func appendAppended(dst []byte, a *Appended) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(a.Session))
	sealed := byte(0)
	if a.Sealed {
		sealed = 1
	}
	return binary.AppendUvarint(append(dst, sealed), uint64(a.Blocks))
}

// fields reads the tagged fields of a row and returns how many there are.
func (r *reader) fields(b *Blob) (n int, err error) {
	n = r.count(2)
	for last, i := byte(0), 0; i < n && !r.failed; i++ {
		tag := r.byte()
		f := reader{b: r.take(r.count(1))}
		if r.failed || tag <= last {
			return n, ErrMalformed
		}
		if tag > tagLast {
			return n, fmt.Errorf("%w: %w", ErrMalformed, feature.Later("a field of a blob", uint64(tag), tagLast))
		}
		last = tag
		switch tag {
		case tagLease:
			b.Lease = f.lease()
		case tagTiering:
			b.Tiering = f.tiering()
		case tagTags:
			b.Tags = f.pairs()
			f.failed = f.failed || len(b.Tags) == 0
		case tagSnapshots:
			b.Snapshots = Snapshots{First: geo.Timestamp(f.uint64()), Last: geo.Timestamp(f.uint64()), Count: f.uvarint()}
			f.failed = f.failed || b.Snapshots.Count == 0
		case tagCopied:
			b.Copied = f.copied()
		}
		if f.failed || len(f.b) > 0 {
			return n, ErrMalformed
		}
	}
	return n, nil
}

func (r *reader) lease() (l lease.Lease) {
	kind := r.byte()
	copy(l.ID[:], r.take(len(l.ID)))
	l.Seconds = r.uint32()
	l.Until = geo.Timestamp(r.uint64())
	if r.failed {
		return lease.Lease{}
	}
	l.Kind = lease.Kind(kind)
	r.failed = l.Kind == lease.KindNone || !l.Valid()
	return l
}

func (r *reader) tiering() (t Tiering) {
	t.Changed = geo.Timestamp(r.uint64())
	if r.failed || len(r.b) == 0 {
		r.failed = r.failed || t.Changed == 0
		return t
	}
	t.To = Tier(r.byte())
	high := r.byte()
	t.High, t.Until = high == 1, geo.Timestamp(r.uint64())
	r.failed = r.failed || high > 1 || t.To == TierDefault
	return t
}

// appended reads what stands for the payload of an append blob.
func (r *reader) appended() *Appended {
	a := &Appended{Session: geo.Timestamp(r.uint64())}
	sealed, n := r.byte(), r.uvarint()
	a.Sealed, a.Blocks = sealed == 1, uint32(min(n, CommittedMax))
	r.failed = r.failed || sealed > 1 || n > CommittedMax
	return a
}
