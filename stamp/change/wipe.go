package change

import "encoding/binary"

// Wipe appends the deletion of the rows with keys in [lower, upper).
func (b *Builder) Wipe(lower, upper []byte) {
	start := b.begin(PartWipe)
	for _, key := range [...][]byte{lower, upper} {
		b.buf = binary.AppendUvarint(b.buf, uint64(len(key)))
		b.buf = append(b.buf, key...)
	}
	b.end(start)
}

// ParseWipe decodes a PartWipe. The keys alias b. A span without keys is malformed.
func ParseWipe(b []byte) (lower, upper []byte, err error) {
	rd := reader{b: b}
	lower, upper = rd.bytes(), rd.bytes()
	if rd.failed || len(rd.b) != 0 || string(lower) >= string(upper) {
		return nil, nil, ErrMalformed
	}
	return lower, upper, nil
}
