package entity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"antipode/services/storageerr"
)

// Limits of protocol/table.md 4.2 to 4.6. Units are UTF-16 code units.
const (
	PropertiesMax  = 252
	NameUnitsMax   = 255
	KeyUnitsMax    = 512
	StringUnitsMax = 32768
	BinaryBytesMax = 65536
	// SizeMax bounds Size, in bytes of the published formula.
	SizeMax = 1 << 20

	tableNameMin = 3
	tableNameMax = 63
)

// Names of the system properties, which a list never holds.
const (
	PartitionKey = "PartitionKey"
	RowKey       = "RowKey"
	Timestamp    = "Timestamp"
)

// ValidateKey refuses a PartitionKey or RowKey, as name says, that an Insert may not
// have. The empty key is legal.
func ValidateKey(name, value string) error {
	if err := checkKeyLength(value); err != nil {
		return err
	}
	if forbidden(value) >= 0 {
		return outOfRange(name, value)
	}
	return nil
}

// ValidateURLKey is ValidateKey for a key that stands in a request path: the protocol
// words the same faults differently there.
func ValidateURLKey(value string) error {
	switch i := forbidden(value); {
	case i < 0:
		return checkKeyLength(value)
	case value[i] == '/' || value[i] == '\\':
		return storageerr.QuerySyntax
	}
	return storageerr.OutOfRangeInput
}

func checkKeyLength(value string) error {
	if !utf8.ValidString(value) {
		return storageerr.InvalidInput
	}
	if len(value) > KeyUnitsMax && UTF16Len(value) > KeyUnitsMax {
		return storageerr.PropertyValueTooLarge
	}
	return nil
}

// forbidden returns the offset of the first character a key may not hold, or -1:
// / \ # ?, U+0000-001F and U+007F-009F.
func forbidden(value string) int {
	for i := range len(value) {
		switch c := value[i]; {
		case c < 0x20, c == 0x7f, c == '/', c == '\\', c == '#', c == '?':
			return i
		case c == 0xc2 && i+1 < len(value) && value[i+1] < 0xa0:
			return i
		}
	}
	return -1
}

// outOfRange returns the error row for a property value outside its range.
func outOfRange(name, value string) error {
	return storageerr.OutOfRangeInput.Saying("The '" + name + "' parameter of value '" + value + "' is out of range.")
}

// ValidateTableName refuses a name that no table may be created with. The length is tested before
// the characters.
func ValidateTableName(name string) error {
	if n := UTF16Len(name); n < tableNameMin || n > tableNameMax {
		return storageerr.NameLengthOutOfRange
	}
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return storageerr.InvalidResourceName
		}
	}
	if strings.EqualFold(name, "tables") {
		return storageerr.InvalidInput
	}
	return nil
}

// ValidateName refuses a property name that is not a C# identifier and an XML name,
// is too long, or belongs to a system property. C# counts surrogates one by one and
// takes none, so characters above U+FFFF are refused.
func ValidateName(name []byte) error {
	if len(name) == 0 {
		return storageerr.PropertyNameInvalid
	}
	if len(name) > NameUnitsMax && UTF16Len(name) > NameUnitsMax {
		return storageerr.PropertyNameTooLong
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c == '_':
		case c >= '0' && c <= '9' && i > 0:
		case c < utf8.RuneSelf:
			return storageerr.PropertyNameInvalid
		default:
			r, size := utf8.DecodeRune(name[i:])
			if r == utf8.RuneError && size == 1 || !identifierRune(r, i == 0) {
				return storageerr.PropertyNameInvalid
			}
			i += size - 1
		}
	}
	if IsSystem(name) {
		return storageerr.PropertyNameInvalid
	}
	return nil
}

// IsSystem reports whether name is PartitionKey, RowKey or Timestamp.
func IsSystem(name []byte) bool {
	switch string(name) {
	case PartitionKey, RowKey, Timestamp:
		return true
	}
	return false
}

// identifierRune is the rule beyond ASCII.
func identifierRune(r rune, first bool) bool {
	if !xmlNameRune(r, first) {
		return false
	}
	if unicode.In(r, unicode.L, unicode.Nl) {
		return true
	}
	return !first && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Cf)
}

// xmlNameRune is NameStartChar and NameChar of XML 1.0, fifth edition, from U+0080 to
// U+FFFF.
func xmlNameRune(r rune, first bool) bool {
	switch {
	case r >= 0xc0 && r <= 0x2ff:
		return r != 0xd7 && r != 0xf7
	case r >= 0x370 && r <= 0x1fff:
		return r != 0x37e
	case r >= 0x200c && r <= 0x200d, r >= 0x2070 && r <= 0x218f, r >= 0x2c00 && r <= 0x2fef,
		r >= 0x3001 && r <= 0xd7ff, r >= 0xf900 && r <= 0xfdcf, r >= 0xfdf0 && r <= 0xfffd:
		return true
	}
	return !first && (r == 0xb7 || r >= 0x300 && r <= 0x36f || r >= 0x203f && r <= 0x2040)
}

func checkString(v []byte) error {
	if len(v) > StringUnitsMax && UTF16Len(v) > StringUnitsMax {
		return storageerr.PropertyValueTooLarge
	}
	if !utf8.Valid(v) {
		return storageerr.InvalidInput
	}
	return nil
}

// Validate checks a whole entity: every limit of every property, that names are
// unique, and the size. A list that is not well-formed wraps ErrMalformed. Keys are
// ValidateKey's.
func Validate(pk, rk string, list []byte) error {
	r := Read(list)
	if r.Len() > PropertiesMax {
		return storageerr.TooManyProperties
	}
	seen := make(map[string]struct{}, r.Len())
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		if err := ValidateName(p.Name); err != nil {
			return err
		}
		if err := checkValue(p); err != nil {
			return err
		}
		if _, twice := seen[string(p.Name)]; twice {
			return storageerr.DuplicateProperties
		}
		seen[string(p.Name)] = struct{}{}
	}
	if err := r.Err(); err != nil {
		return err
	}
	return CheckSize(pk, rk, list)
}
