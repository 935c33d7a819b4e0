package json

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"

	"antipode/api/tables/edm"
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
		if !in.HasPK || !in.HasRK {
			return odata.Incoming{}, storageerr.PropertiesNeedValue
		}
		if err := entity.ValidateKey(entity.PartitionKey, in.PK); err != nil {
			return odata.Incoming{}, err
		}
		if err := entity.ValidateKey(entity.RowKey, in.RK); err != nil {
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

// build writes the members down in their stored form.
func build(members []member, sizeHint int) (in odata.Incoming, err error) {
	b := entity.Build(make([]byte, 0, sizeHint))
	for i := range members {
		m := &members[i]
		switch string(m.name) {
		case entity.PartitionKey:
			in.PK, in.HasPK, err = keyText(*m)
		case entity.RowKey:
			in.RK, in.HasRK, err = keyText(*m)
		default:
			err = addMember(&b, m)
		}
		if err != nil {
			return odata.Incoming{}, err
		}
	}
	in.Props = b.Bytes()
	return in, nil
}

// keyText returns the text of a key; null counts as missing.
func keyText(m member) (text string, has bool, err error) {
	switch {
	case m.typ != 0 && m.typ != entity.String:
		return "", false, storageerr.InvalidInput
	case m.val.kind == kindNull:
		return "", false, nil
	case m.val.kind != kindString:
		return "", false, storageerr.InvalidInput
	case m.val.escaped:
		return string(appendText(nil, m.val.raw)), true, nil
	}
	return string(m.val.raw), true, nil
}

// addMember converts one custom property.
func addMember(b *entity.Builder, m *member) error {
	if m.typ == badType || m.val.kind == kindNested {
		return storageerr.InvalidInput
	}
	if m.val.kind == kindNull {
		return entity.ValidateName(m.name)
	}
	typ := m.typ
	if typ == 0 {
		typ = plainType(m.val)
	}
	text := m.val.raw
	var unescaped [256]byte
	if m.val.escaped {
		text = appendText(unescaped[:0], text)
	}
	switch typ {
	case entity.String, entity.Boolean:
		return addPlain(b, m, typ, text)
	case entity.GUID, entity.Binary, entity.DateTime:
		return addText(b, m, typ, text)
	}
	return addNumber(b, m, typ, text)
}

// plainType is the type of a value without annotation.
func plainType(v value) entity.Type {
	switch v.kind {
	case kindTrue, kindFalse:
		return entity.Boolean
	case kindString:
		return entity.String
	case kindInteger:
		if _, ok := edm.ParseInteger(v.raw, 32); ok {
			return entity.Int32
		}
	}
	return entity.Double
}

func addPlain(b *entity.Builder, m *member, typ entity.Type, text []byte) error {
	p := entity.Property{Name: m.name, Type: typ, Value: text}
	if typ == entity.String {
		if m.val.kind != kindString {
			return storageerr.InvalidInput
		}
		return b.Add(p)
	}
	on := m.val.kind == kindTrue
	if m.val.kind == kindString {
		switch {
		case bytes.EqualFold(text, []byte("true")), string(text) == "1":
			on = true
		case !bytes.EqualFold(text, []byte("false")) && string(text) != "0":
			return storageerr.InvalidInput
		}
	} else if m.val.kind != kindTrue && m.val.kind != kindFalse {
		return storageerr.InvalidInput
	}
	var bit [1]byte
	if on {
		bit[0] = 1
	}
	p.Value = bit[:]
	return b.Add(p)
}

// addText adds a value of a type that JSON can only write as a string.
func addText(b *entity.Builder, m *member, typ entity.Type, text []byte) error {
	if m.val.kind != kindString {
		return storageerr.InvalidInput
	}
	p := entity.Property{Name: m.name, Type: typ}
	switch typ {
	case entity.GUID:
		g, ok := edm.ParseGUID(text)
		if !ok {
			return storageerr.InvalidInput
		}
		p.Value = g[:]
		return b.Add(p)
	case entity.DateTime:
		ticks, ok := edm.ParseDateTime(text)
		if !ok {
			return storageerr.InvalidInput
		}
		if ticks < entity.TicksMin || ticks > entity.TicksMax {
			return edm.DateTimeOutOfRange(m.name, ticks)
		}
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], uint64(ticks))
		p.Value = w[:]
		return b.Add(p)
	}
	var buf [256]byte
	decoded, err := base64.StdEncoding.AppendDecode(buf[:0], text)
	if err != nil {
		return storageerr.InvalidInput
	}
	p.Value = decoded
	return b.Add(p)
}

func addNumber(b *entity.Builder, m *member, typ entity.Type, text []byte) error {
	var w [8]byte
	p := entity.Property{Name: m.name, Type: typ, Value: w[:]}
	switch m.val.kind {
	case kindTrue, kindFalse:
		return storageerr.InvalidInput
	case kindNumber:
		if typ != entity.Double {
			return storageerr.InvalidInput
		}
	}
	var ok bool
	switch typ {
	case entity.Double:
		var v float64
		v, ok = edm.ParseDouble(text)
		binary.LittleEndian.PutUint64(w[:], math.Float64bits(v))
	case entity.Int64:
		var v int64
		v, ok = edm.ParseInteger(text, 64)
		binary.LittleEndian.PutUint64(w[:], uint64(v))
	case entity.Int32:
		var v int64
		v, ok = edm.ParseInteger(text, 32)
		binary.LittleEndian.PutUint32(w[:], uint32(v))
		p.Value = w[:4]
	}
	if !ok {
		return storageerr.InvalidInput
	}
	return b.Add(p)
}
