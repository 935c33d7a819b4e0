package entity

import (
	"encoding/binary"
	"fmt"
	"math"

	"antipode/services/storageerr"
)

// Builder writes one property list. It refuses what the limits of a single property
// forbid, with the row of the protocol, and a refused property leaves no trace. That
// names are unique is up to the caller, who usually knows; Validate checks it.
type Builder struct {
	buf   []byte
	start int
}

// Build starts an empty list at the end of dst, which the Builder owns from now on.
func Build(dst []byte) Builder {
	return Builder{buf: append(dst, version, 0), start: len(dst)}
}

// Bytes returns dst with the list appended.
func (b *Builder) Bytes() []byte { return b.buf }

// Len is the number of properties written.
func (b *Builder) Len() int { return int(b.buf[b.start+1]) }

// Add copies p to the end of the list.
func (b *Builder) Add(p Property) error {
	if b.Len() >= PropertiesMax {
		return storageerr.TooManyProperties
	}
	if err := ValidateName(p.Name); err != nil {
		return err
	}
	if err := checkValue(p); err != nil {
		return err
	}
	b.add(p)
	return nil
}

// add appends a property whose limits were checked.
func (b *Builder) add(p Property) {
	buf := append(b.buf, byte(p.Type))
	buf = binary.AppendUvarint(buf, uint64(len(p.Name)))
	buf = append(buf, p.Name...)
	if p.Type.fixedSize() < 0 {
		buf = binary.AppendUvarint(buf, uint64(len(p.Value)))
	}
	b.buf = append(buf, p.Value...)
	b.buf[b.start+1]++
}

// AddString adds a String.
func (b *Builder) AddString(name, v string) error {
	return b.Add(Property{Name: []byte(name), Type: String, Value: []byte(v)})
}

// AddBinary adds a Binary.
func (b *Builder) AddBinary(name string, v []byte) error {
	return b.Add(Property{Name: []byte(name), Type: Binary, Value: v})
}

// AddInt32 adds an Int32.
func (b *Builder) AddInt32(name string, v int32) error {
	var w [4]byte
	binary.LittleEndian.PutUint32(w[:], uint32(v))
	return b.Add(Property{Name: []byte(name), Type: Int32, Value: w[:]})
}

// AddInt64 adds an Int64.
func (b *Builder) AddInt64(name string, v int64) error { return b.add8(name, Int64, uint64(v)) }

// AddDouble adds a Double.
func (b *Builder) AddDouble(name string, v float64) error {
	return b.add8(name, Double, math.Float64bits(v))
}

// AddDateTime adds a DateTime given in ticks since 0001-01-01.
func (b *Builder) AddDateTime(name string, ticks int64) error {
	return b.add8(name, DateTime, uint64(ticks))
}

// AddBoolean adds a Boolean.
func (b *Builder) AddBoolean(name string, v bool) error {
	w := [1]byte{0}
	if v {
		w[0] = 1
	}
	return b.Add(Property{Name: []byte(name), Type: Boolean, Value: w[:]})
}

// AddGUID adds a Guid, bytes in the order of its text.
func (b *Builder) AddGUID(name string, v [16]byte) error {
	return b.Add(Property{Name: []byte(name), Type: GUID, Value: v[:]})
}

func (b *Builder) add8(name string, t Type, v uint64) error {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	return b.Add(Property{Name: []byte(name), Type: t, Value: w[:]})
}

// checkValue refuses a value beyond its type's limits. A value whose length does not
// fit its type is a fault of the caller, not of a client, and wraps ErrMalformed.
func checkValue(p Property) error {
	switch n := p.Type.fixedSize(); {
	case n == 0, n > 0 && len(p.Value) != n:
		return fmt.Errorf("%w: %d bytes for %s", ErrMalformed, len(p.Value), p.Type)
	case n > 0 && !canonical(p.Type, p.Value):
		return storageerr.OutOfRangeInput
	}
	switch p.Type {
	case String:
		return checkString(p.Value)
	case Binary:
		if len(p.Value) > BinaryBytesMax {
			return storageerr.PropertyValueTooLarge
		}
	}
	return nil
}
