package entity

import (
	"math"

	"antipode/services/storageerr"
)

// Merge returns a new list: the properties of old, with those that patch names given
// patch's type and value in place, then those that only patch has. Nothing is removed
// (protocol/table.md 9.7). Each list must hold unique names. The limit on the number of
// properties is checked here, the one on size is CheckSize's.
func Merge(old, patch []byte) ([]byte, error) {
	b := Build(make([]byte, 0, len(old)+len(patch)))
	var used [math.MaxUint8 + 1]bool
	r := Read(old)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		q, at, err := locate(patch, p.Name)
		if err != nil {
			return nil, err
		}
		if at >= 0 {
			used[at], p = true, q
		}
		b.add(p)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	r = Read(patch)
	for i := 0; ; i++ {
		p, ok := r.Next()
		if !ok {
			break
		}
		if used[i] {
			continue
		}
		if b.Len() >= PropertiesMax {
			return nil, storageerr.TooManyProperties
		}
		b.add(p)
	}
	return b.Bytes(), r.Err()
}

// locate returns the property of list called name and its place, or -1.
func locate(list, name []byte) (p Property, at int, err error) {
	r := Read(list)
	for i := 0; ; i++ {
		p, ok := r.Next()
		if !ok {
			return Property{}, -1, r.Err()
		}
		if string(p.Name) == string(name) {
			return p, i, nil
		}
	}
}

// Size is the published size of an entity in bytes (protocol/table.md 4.6). A malformed list has
// the greatest possible size, so that it passes no limit.
func Size(pk, rk string, list []byte) int {
	n := 4 + 2*(UTF16Len(pk)+UTF16Len(rk))
	r := Read(list)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		n += 8 + 2*UTF16Len(p.Name)
		switch p.Type {
		case String:
			n += 2*UTF16Len(p.Value) + 4
		case Binary:
			n += len(p.Value) + 4
		default:
			n += p.Type.fixedSize()
		}
	}
	if r.Err() != nil {
		return math.MaxInt
	}
	return n
}

// SizeBound is above Size, and costs nothing: it looks at no property.
func SizeBound(pk, rk string, list []byte) int {
	r := Read(list)
	// By the formula a String has six bytes more than twice its stored form, all others less.
	return 4 + 2*(len(pk)+len(rk)+len(list)) + 6*r.Len()
}

// CheckSize refuses an entity above SizeMax. It does not read a list that is too short to reach
// SizeMax, well-formed or not.
func CheckSize(pk, rk string, list []byte) error {
	// No value has more bytes by the formula than twice its stored form plus 16.
	if 2*(len(pk)+len(rk)+len(list))+16*(PropertiesMax+1) <= SizeMax {
		return nil
	}
	if Size(pk, rk, list) > SizeMax {
		return storageerr.EntityTooLarge
	}
	return nil
}
