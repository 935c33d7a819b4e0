package entity

// fewNames is up to where names are compared one by one.
const fewNames = 8

// Finder finds the properties of some names in one list after the other. It is not safe for concurrent use.
//
// Neighbours in a table mostly have one form: the same types and lengths of names in the same order. So it keeps the
// form of the list before, up to the last property found. In a list that has this form, it compares the names where
// they were found. A name is in a list once, so none of those that are skipped can be one of these. Where the list
// before lacked names, the form is that of all of it, and what is skipped is compared if it is as long as one of the
// names. Any other list is walked. What is found, and what is reported of it, does not depend on the lists before.
type Finder struct {
	names []string
	// places are the indices of names, for where there are many.
	places map[string]int
	// at is for each name which of found it is, counted from 1; 0 is none.
	at    []uint8
	found []found
	// form is of the list before; empty where that has none.
	form []header
	// lengths has a bit for each length of a name below 128.
	lengths [2]uint64
}

type found struct {
	place int
	Property
}

// header is the form of one property.
type header struct {
	typ Type
	// name is the length of the name, in one byte.
	name byte
	// size is that of the value: see Type.fixedSize.
	size int8
	// wanted: it is the next of found. open: it is not, and another one of its length may be one of the names.
	wanted, open bool
}

// NewFinder returns a finder of properties with names, which are distinct; places are their indices. Neither may change
// from now on.
func NewFinder(names []string, places map[string]int) *Finder {
	f := &Finder{names: names, places: places, at: make([]uint8, len(names))}
	for _, name := range names {
		if n := len(name); n < 0x80 {
			f.lengths[n/64] |= 1 << (n % 64)
		}
	}
	return f
}

// Find finds the properties in a list, which must not change while they are used. It returns how many properties it
// stands for, the work of a walk over them, whether or not one was needed: the walk ends with the last of the names, and
// at the first fault. Faults within values that are not found are not seen.
func (f *Finder) Find(list []byte) (walked int, err error) {
	if f.findAgain(list) {
		return len(f.form), nil
	}
	return f.walk(list)
}

// Get returns the property of a place among the names, nil if the list has none. It is valid until the next Find.
func (f *Finder) Get(place int) *Property {
	i := f.at[place]
	if i == 0 {
		return nil
	}
	return &f.found[i-1].Property
}

// findAgain finds the properties in a list of the form of the list before. It reports false, with nothing to rely on, for
// any other list, and where there is anything to report about it.
func (f *Finder) findAgain(list []byte) bool {
	if len(f.form) == 0 || len(list) < headerLen || list[0] != version || int(list[1]) < len(f.form) {
		return false
	}
	at, next := headerLen, 0
	for i := range f.form {
		h := &f.form[i]
		if at+1 >= len(list) || Type(list[at]) != h.typ || list[at+1] != h.name {
			return false
		}
		name := at + 2
		start := name + int(h.name)
		end := start + int(h.size)
		if h.size < 0 {
			start, end = shortLength(list, start)
		}
		if end > len(list) || end == 0 {
			return false
		}
		if h.wanted {
			p := &f.found[next]
			p.Name, p.Value = list[name:name+int(h.name)], list[start:end:end]
			if string(p.Name) != f.names[p.place] || !canonical(h.typ, p.Value) {
				return false
			}
			next++
		} else if h.open && f.place(list[name:name+int(h.name)]) >= 0 {
			return false
		}
		at = end
	}
	if int(list[1]) > len(f.form) {
		return len(f.found) == len(f.names)
	}
	return at == len(list)
}

// walk finds the properties in any list, and keeps its form.
func (f *Finder) walk(list []byte) (walked int, err error) {
	for _, p := range f.found {
		f.at[p.place] = 0
	}
	f.found, f.form = f.found[:0], f.form[:0]
	r, plain := Read(list), true
	all, at, left := r.left, r.at, r.left
	for len(f.found) < len(f.names) && left > 0 && r.err == nil {
		h, end := skim(list, at)
		plain = plain && h.typ > 0 // 0 has a long name.
		place := -1
		if end > 0 {
			place = f.place(list[at+2 : at+2+int(h.name)])
		}
		if end == 0 || place >= 0 { // A long one, a fault, or one of the names.
			r.at, r.left = at, left
			p, ok := r.Next()
			if !ok {
				break
			}
			if end == 0 {
				place = f.place(p.Name)
			}
			h.wanted = f.keep(place, p)
			at, left = r.at, r.left
		} else if at, left = end, left-1; left == 0 {
			r.at, r.left = at, left
			r.finish()
		}
		f.form = append(f.form, h)
	}
	if !plain || r.err != nil {
		f.form = f.form[:0]
	} else if len(f.found) < len(f.names) {
		for i := range f.form {
			h := &f.form[i]
			h.open = !h.wanted && f.lengths[h.name/64]>>(h.name%64)&1 > 0
		}
	}
	return all - left, r.err
}

// skim returns the form of the property at an offset and the offset behind that, which is 0 where its lengths are not
// short ones, and at a fault: those are for Reader.Next to see. It does not look at the value.
func skim(list []byte, at int) (h header, end int) {
	if at+1 >= len(list) || list[at+1] >= 0x80 {
		return h, 0
	}
	h.typ, h.name = Type(list[at]), list[at+1]
	h.size = int8(h.typ.fixedSize())
	value := at + 2 + int(h.name)
	switch {
	case h.size > 0:
		end = value + int(h.size)
	case h.size < 0:
		_, end = shortLength(list, value)
	}
	if end > len(list) {
		end = 0
	}
	return h, end
}

// shortLength reads a length of one or two bytes, and returns where what it is the length of starts and ends, which may be
// beyond the list. The end is 0 for any other length.
func shortLength(list []byte, at int) (start, end int) {
	switch {
	case at >= len(list):
		return 0, 0
	case list[at] < 0x80:
		return at + 1, at + 1 + int(list[at])
	case at+1 < len(list) && list[at+1]-1 < 0x7f: // Not 0, which would be a longer form.
		return at + 2, at + 2 + int(list[at]&0x7f) + int(list[at+1])<<7
	}
	return 0, 0
}

// keep keeps a property of the list if it is wanted. If two have one name, which no writer stores, the first one
// counts.
func (f *Finder) keep(place int, p Property) (wanted bool) {
	if place < 0 || f.at[place] > 0 {
		return false
	}
	f.found = append(f.found, found{place, p})
	f.at[place] = uint8(len(f.found)) // At most PropertiesMax: a list counts them in a byte.
	return true
}

// place returns the place of a name among the names, -1 if it is none of them.
func (f *Finder) place(name []byte) int {
	if len(f.names) > fewNames {
		if place, ok := f.places[string(name)]; ok {
			return place
		}
		return -1
	}
	for i := range f.names {
		if string(name) == f.names[i] { // Unlike slices.Index, it makes no string.
			return i
		}
	}
	return -1
}
