package blobs

import (
	"encoding/binary"

	"antipode/geo"
	"antipode/services/lease"
)

// appendLease appends the field of a lease.
func appendLease(dst []byte, l lease.Lease) []byte {
	dst = append(append(dst, byte(l.Kind)), l.ID[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, l.Seconds)
	return binary.LittleEndian.AppendUint64(dst, uint64(l.Until))
}

// fields reads the tagged fields of a row, one at least.
func (r *reader) fields(b *Blob) {
	n := r.uvarint()
	if n != 1 {
		r.failed = true // Each tag once, and there is one tag.
		return
	}
	tag := r.take(1)
	field := reader{b: r.take(r.count(1))}
	if r.failed || tag[0] != tagLease {
		r.failed = true
		return
	}
	b.Lease = field.lease()
	r.failed = field.failed || len(field.b) > 0
}

func (r *reader) lease() (l lease.Lease) {
	kind := r.take(1)
	copy(l.ID[:], r.take(len(l.ID)))
	l.Seconds = r.uint32()
	l.Until = geo.Timestamp(r.uint64())
	if r.failed {
		return lease.Lease{}
	}
	l.Kind = lease.Kind(kind[0])
	r.failed = l.Kind == lease.KindNone || !l.Valid()
	return l
}
