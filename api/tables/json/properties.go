package json

import (
	"antipode/api/tables/edm"
	"antipode/api/tables/odata"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

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
	if !fits(m.val.kind, typ) {
		return storageerr.InvalidInput
	}
	p := entity.Property{Name: m.name, Type: typ, Value: text}
	var buf [256]byte
	var err error
	switch {
	case typ == entity.String:
	case m.val.kind == kindString, typ != entity.Boolean:
		p.Value, err = edm.ParseValue(buf[:0], m.name, typ, text)
	default:
		p.Value = edm.AppendBoolean(buf[:0], m.val.kind == kindTrue)
	}
	if err != nil {
		return err
	}
	return b.Add(p)
}

// fits reports whether JSON may write a value of the type as one of the kind. A string may be of any.
func fits(k kind, typ entity.Type) bool {
	switch k {
	case kindString:
		return true
	case kindTrue, kindFalse:
		return typ == entity.Boolean
	case kindNumber:
		return typ == entity.Double
	case kindInteger:
		return typ == entity.Double || typ == entity.Int32 || typ == entity.Int64
	}
	return false
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
