package edm

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

// ParseValue appends to dst the stored form of a value that is text, as it stands in an annotated
// JSON string and in an Atom element (protocol/table.md 5.1, 5.2). name is the property's, for the
// error. Binary takes padded Base64, Boolean also 0, 1 and any case.
func ParseValue(dst, name []byte, t entity.Type, text []byte) ([]byte, error) {
	ok := false
	switch t {
	case entity.String:
		return append(dst, text...), nil
	case entity.Boolean:
		on := bytes.EqualFold(text, []byte("true")) || string(text) == "1"
		ok = on || bytes.EqualFold(text, []byte("false")) || string(text) == "0"
		dst = AppendBoolean(dst, on)
	case entity.GUID:
		var g [16]byte
		g, ok = ParseGUID(text)
		dst = append(dst, g[:]...)
	case entity.DateTime:
		var ticks int64
		ticks, ok = ParseDateTime(text)
		if ok && (ticks < entity.TicksMin || ticks > entity.TicksMax) {
			return nil, DateTimeOutOfRange(name, ticks)
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(ticks))
	case entity.Binary:
		var err error
		dst, err = base64.StdEncoding.AppendDecode(dst, text)
		ok = err == nil
	case entity.Double:
		var v float64
		v, ok = ParseDouble(text)
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	case entity.Int64:
		var v int64
		v, ok = ParseInteger(text, 64)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	case entity.Int32:
		var v int64
		v, ok = ParseInteger(text, 32)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	if !ok {
		return nil, storageerr.InvalidInput
	}
	return dst, nil
}

// AppendBoolean appends the stored form of a Boolean.
func AppendBoolean(dst []byte, on bool) []byte {
	if on {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendValue appends the text of a value of any type but String and Double, whose text is
// different in JSON and in Atom.
func AppendValue(dst []byte, p entity.Property) []byte {
	switch p.Type {
	case entity.Int32:
		return strconv.AppendInt(dst, int64(p.Int32()), 10)
	case entity.Int64:
		return strconv.AppendInt(dst, p.Int64(), 10)
	case entity.Boolean:
		return strconv.AppendBool(dst, p.Boolean())
	case entity.DateTime:
		return AppendDateTime(dst, p.DateTime(), ":")
	case entity.GUID:
		return AppendGUID(dst, p.GUID())
	case entity.Binary:
		return base64.StdEncoding.AppendEncode(dst, p.Value)
	}
	return dst
}
