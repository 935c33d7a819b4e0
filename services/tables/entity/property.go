package entity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// version is the first byte of every property list.
const version = 1

// headerLen is the length of the version and count bytes.
const headerLen = 2

// Bounds of DateTime, in 100 ns ticks since 0001-01-01T00:00:00 UTC: 1601-01-01 and
// the last tick of the year 9999.
const (
	TicksMin int64 = 504911232000000000
	TicksMax int64 = 3155378975999999999
)

// ErrMalformed is returned for bytes that no Builder wrote.
var ErrMalformed = errors.New("entity: malformed property list")

// Property is one named, typed value. Name and Value are views: from a Reader they
// point into the list that is read, and Builder.Add copies them.
type Property struct {
	Name []byte
	Type Type
	// Value is the stored form: fixed-size numbers little-endian, Guid in the order
	// of its text, String and Binary as they are, without their length.
	Value []byte
}

// Int32 returns the value of an Int32.
func (p Property) Int32() int32 { return int32(binary.LittleEndian.Uint32(p.Value)) }

// Int64 returns the value of an Int64.
func (p Property) Int64() int64 { return int64(binary.LittleEndian.Uint64(p.Value)) }

// Double returns the value of a Double.
func (p Property) Double() float64 { return math.Float64frombits(binary.LittleEndian.Uint64(p.Value)) }

// Boolean returns the value of a Boolean.
func (p Property) Boolean() bool { return p.Value[0] != 0 }

// DateTime returns the value of a DateTime, in 100 ns ticks since 0001-01-01 UTC.
func (p Property) DateTime() int64 { return int64(binary.LittleEndian.Uint64(p.Value)) }

// GUID returns the value of a Guid, bytes in the order of its text.
func (p Property) GUID() (g [16]byte) { return [16]byte(p.Value) }

// Reader walks a property list in order and allocates nothing.
//
//	r := entity.Read(list)
//	for p, ok := r.Next(); ok; p, ok = r.Next() { ... }
//	if err := r.Err(); err != nil { ... }
type Reader struct {
	list []byte
	at   int
	left int
	err  error
}

// Read starts a walk over list, which must not change while views of it are used.
func Read(list []byte) Reader {
	r := Reader{list: list, at: headerLen}
	switch {
	case len(list) < headerLen:
		r.at = len(list)
		r.fail("no header")
	case list[0] != version:
		r.at = 0
		r.fail("unknown version")
	default:
		r.left = int(list[1])
		r.finish()
	}
	return r
}

// Len is the number of properties not yet read.
func (r *Reader) Len() int { return r.left }

// Err returns why Next stopped: nil at the end of a well-formed list, else an error that
// wraps ErrMalformed.
func (r *Reader) Err() error { return r.err }

// Next returns the next property, and false at the end or at the first fault.
func (r *Reader) Next() (p Property, ok bool) {
	if r.left == 0 || r.err != nil {
		return p, false
	}
	if r.at >= len(r.list) {
		return p, r.fail("property missing")
	}
	p.Type = Type(r.list[r.at])
	r.at++
	if p.Name, ok = r.cutBytes(); !ok {
		return Property{}, false
	}
	switch n := p.Type.fixedSize(); {
	case n < 0:
		if p.Value, ok = r.cutBytes(); !ok {
			return Property{}, false
		}
	case n == 0:
		return Property{}, r.fail("unknown type")
	case len(r.list)-r.at < n:
		return Property{}, r.fail("value cut short")
	default:
		p.Value = r.list[r.at : r.at+n : r.at+n]
		r.at += n
	}
	if !canonical(p.Type, p.Value) {
		return Property{}, r.fail("value out of range")
	}
	if r.left--; r.left == 0 {
		if r.finish(); r.err != nil {
			return Property{}, false
		}
	}
	return p, true
}

// canonical reports whether the bytes of a fixed-size value are ones a Builder writes.
func canonical(t Type, value []byte) bool {
	switch t {
	case Boolean:
		return value[0] <= 1
	case DateTime:
		ticks := int64(binary.LittleEndian.Uint64(value))
		return ticks >= TicksMin && ticks <= TicksMax
	}
	return true
}

// cutBytes reads a length and that many bytes. Most lengths are one byte.
func (r *Reader) cutBytes() ([]byte, bool) {
	if r.at < len(r.list) {
		if n := int(r.list[r.at]); n < 0x80 && n < len(r.list)-r.at {
			start := r.at + 1
			r.at = start + n
			return r.list[start:r.at:r.at], true
		}
	}
	return r.cutLong()
}

func (r *Reader) cutLong() ([]byte, bool) {
	n, size := binary.Uvarint(r.list[r.at:])
	if size <= 0 || size > 1 && r.list[r.at+size-1] == 0 {
		return nil, r.fail("bad length")
	}
	start := r.at + size
	if n > uint64(len(r.list)-start) {
		return nil, r.fail("length beyond the end")
	}
	r.at = start + int(n)
	return r.list[start:r.at:r.at], true
}

func (r *Reader) finish() {
	if r.left == 0 && r.at != len(r.list) {
		r.fail("bytes after the last property")
	}
}

// fail keeps the fault and its offset; it returns false for use in a return.
func (r *Reader) fail(what string) bool {
	r.err = fmt.Errorf("%w: %s at byte %d of %d", ErrMalformed, what, r.at, len(r.list))
	return false
}

// Find returns the property called name. A fault before it is returned; the rest of the list is
// not read.
func Find(list []byte, name string) (p Property, found bool, err error) {
	r := Read(list)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		if string(p.Name) == name {
			return p, true, nil
		}
	}
	return Property{}, false, r.Err()
}
