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
