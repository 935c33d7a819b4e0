package json

import (
	"bytes"

	"antipode/api/tables/odata"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

const (
	// membersMax bounds the members of a body, annotations and nulls included; 252
	// annotated properties and two annotated keys make 508.
	membersMax = 1024
	// fewMembers is up to where names are searched one by one.
	fewMembers = 16

	annotationSuffix = "@odata.type"
	// badType marks a property whose annotation names no type of the service.
	badType entity.Type = 0xff
)

// member is one property of a body before its type is known for sure, because the
// annotation may come later.
type member struct {
	name []byte
	typ  entity.Type // 0 is not annotated
	val  value
}

// annotation is one that did not stand beside its property.
type annotation struct {
	name []byte
	typ  entity.Type
}

// DecodeEntity reads a JSON entity by the rules of protocol/table.md 5.1 and 5.2 into the
// stored form. Every limit of a single property and their number is checked; the size
// of the whole is entity.CheckSize's, who knows the keys and the result of a Merge.
// The result does not share memory with body.
func (l Level) DecodeEntity(body []byte, mode odata.Mode) (odata.Incoming, error) {
	var few [fewMembers + 4]member
	members, err := readMembers(few[:0], body)
	if err != nil {
		return odata.Incoming{}, err
	}
	in, err := build(members, len(body))
	if err != nil {
		return odata.Incoming{}, err
	}
	if mode == odata.Insert {
		if err := in.CheckKeys(); err != nil {
			return odata.Incoming{}, err
		}
	}
	return in, nil
}

// DecodeTableName reads the body of Create Table and returns a legal table name.
func (l Level) DecodeTableName(body []byte) (string, error) {
	members, err := readMembers(nil, body)
	if err != nil {
		return "", err
	}
	for _, m := range members {
		if string(m.name) != "TableName" {
			continue
		}
		name, has, err := keyText(m)
		if err != nil || !has {
			return "", storageerr.InvalidInput
		}
		if err := entity.ValidateTableName(name); err != nil {
			return "", err
		}
		return name, nil
	}
	return "", storageerr.InvalidInput
}

// decoder reads the one object of a body. The members it finds are passed from
// method to method and not kept in it, so that they can stay on the stack.
type decoder struct {
	scan  scanner
	count int
	// pending is an annotation whose property has not come, with a nil name for none.
	pending annotation
	loose   []annotation
}

// readMembers reads the whole body and appends its properties, each with its
// annotation, to members.
func readMembers(members []member, body []byte) ([]member, error) {
	d := decoder{scan: scanner{b: body}}
	members, err := d.object(members)
	if err == nil {
		err = d.link(members)
	}
	return members, err
}

func (d *decoder) object(members []member) ([]member, error) {
	if bytes.HasPrefix(d.scan.b, []byte("\xef\xbb\xbf")) {
		d.scan.i = 3
	}
	if !d.scan.next('{') {
		return nil, storageerr.InvalidInput
	}
	for first := true; !d.scan.next('}'); first = false {
		if !first && !d.scan.next(',') {
			return nil, storageerr.InvalidInput
		}
		if d.count++; d.count > membersMax {
			return nil, storageerr.TooManyProperties
		}
		name, escaped, ok := d.scan.text()
		if !ok || !d.scan.next(':') {
			return nil, storageerr.InvalidInput
		}
		v, ok := d.scan.value(0)
		if !ok {
			return nil, storageerr.InvalidInput
		}
		if escaped {
			name = appendText(nil, name)
		}
		members = d.take(members, name, v)
	}
	if !d.scan.end() {
		return nil, storageerr.InvalidInput
	}
	return members, nil
}

// take sorts one member: property, annotation of a type, or neither of interest.
func (d *decoder) take(members []member, name []byte, v value) []member {
	switch at := bytes.IndexByte(name, '@'); {
	case at >= 0 && string(name[at:]) == annotationSuffix:
		d.annotate(members, name[:at:at], v)
		return members
	case at >= 0 && bytes.HasPrefix(name[at:], []byte("@odata.")):
		return members
	case bytes.HasPrefix(name, []byte("odata.")), string(name) == entity.Timestamp:
		return members
	}
	m := member{name: name, val: v}
	if d.pending.name != nil && bytes.Equal(d.pending.name, name) {
		m.typ = d.pending.typ
		d.pending.name = nil
	}
	return append(members, m)
}

func (d *decoder) annotate(members []member, name []byte, v value) {
	if string(name) == entity.Timestamp {
		return
	}
	typ := badType
	if v.kind == kindString && !v.escaped {
		if t, ok := entity.ParseType(v.raw); ok {
			typ = t
		}
	}
	if n := len(members); n > 0 && members[n-1].typ == 0 && bytes.Equal(members[n-1].name, name) {
		members[n-1].typ = typ
		return
	}
	if d.pending.name != nil {
		d.loose = append(d.loose, d.pending)
	}
	d.pending = annotation{name: name, typ: typ}
}

// link finds the properties of the annotations left over and refuses a name that
// comes twice.
func (d *decoder) link(members []member) error {
	if d.pending.name != nil {
		d.loose = append(d.loose, d.pending)
	}
	var places map[string]int
	if len(members) > fewMembers {
		places = make(map[string]int, len(members))
	}
	for i := range members {
		name := members[i].name
		if places == nil {
			if find(members[:i], name) >= 0 {
				return storageerr.DuplicateProperties
			}
			continue
		}
		if _, twice := places[string(name)]; twice {
			return storageerr.DuplicateProperties
		}
		places[string(name)] = i
	}
	for _, a := range d.loose {
		i := -1
		if places == nil {
			i = find(members, a.name)
		} else if at, ok := places[string(a.name)]; ok {
			i = at
		}
		switch {
		case i < 0: // The property is not in the body.
		case members[i].typ != 0:
			return storageerr.DuplicateProperties
		default:
			members[i].typ = a.typ
		}
	}
	return nil
}

func find(members []member, name []byte) int {
	for i := range members {
		if bytes.Equal(members[i].name, name) {
			return i
		}
	}
	return -1
}
