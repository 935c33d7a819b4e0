package change

import (
	"encoding/binary"
	"fmt"
)

// reader cuts fields from the front of b. After the first field that is not
// there, failed stays true and every further field is zero.
type reader struct {
	b      []byte
	failed bool
	// later is why the bytes cannot be decoded if a later version wrote them; nil otherwise.
	later error
}

// version cuts the version of a value, which has to be this one.
func (r *reader) version() {
	v := r.byte()
	if v > formatVersion && !r.failed {
		r.later = fmt.Errorf("%w: %d, this program knows %d", ErrVersion, v, formatVersion)
	}
	r.failed = r.failed || v != formatVersion
}

// unknown fails for a value or a flag that this version never writes, and a later one may: why has its name.
func (r *reader) unknown(why string, v byte) {
	if !r.failed {
		r.later = fmt.Errorf("%w: %s %d", ErrVersion, why, v)
	}
	r.failed = true
}

// end returns why what was cut is no value that fills the bytes; nil if it is.
func (r *reader) end() error {
	switch {
	case r.later != nil:
		return r.later
	case r.failed || len(r.b) != 0:
		return ErrMalformed
	}
	return nil
}

func (r *reader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.b) {
		r.failed = true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.failed || n <= 0 || (n > 1 && r.b[n-1] == 0) { // A longer form than needed would not encode back.
		r.failed = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of elements of at least size bytes each, so that a made-up
// number cannot make a decoder allocate more than the input is long.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.failed = true
		return 0
	}
	return int(n)
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.failed = true
		return nil
	}
	return r.take(int(n))
}

func (r *reader) short() string { return string(r.take(int(r.byte()))) }
