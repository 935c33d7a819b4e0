package entity

import "fmt"

// Type is the EDM type of a property value.
type Type byte

// The eight types (protocol/table.md 5.1). Durable: never renumber.
const (
	String   Type = 1
	Int32    Type = 2
	Int64    Type = 3
	Double   Type = 4
	Boolean  Type = 5
	DateTime Type = 6
	GUID     Type = 7
	Binary   Type = 8
)

// edmPrefix opens the name of every type on the wire.
const edmPrefix = "Edm."

// String returns the name used in annotations, such as "Edm.Int32".
func (t Type) String() string {
	switch t {
	case String:
		return "Edm.String"
	case Int32:
		return "Edm.Int32"
	case Int64:
		return "Edm.Int64"
	case Double:
		return "Edm.Double"
	case Boolean:
		return "Edm.Boolean"
	case DateTime:
		return "Edm.DateTime"
	case GUID:
		return "Edm.Guid"
	case Binary:
		return "Edm.Binary"
	}
	return fmt.Sprintf("type-%d", byte(t))
}

// ParseType is the inverse of Type.String. It does not keep name.
func ParseType(name []byte) (Type, bool) {
	if len(name) < len(edmPrefix) || string(name[:len(edmPrefix)]) != edmPrefix {
		return 0, false
	}
	switch string(name[len(edmPrefix):]) {
	case "String":
		return String, true
	case "Int32":
		return Int32, true
	case "Int64":
		return Int64, true
	case "Double":
		return Double, true
	case "Boolean":
		return Boolean, true
	case "DateTime":
		return DateTime, true
	case "Guid":
		return GUID, true
	case "Binary":
		return Binary, true
	}
	return 0, false
}

// fixedSize is the length of a value of t in bytes, or -1 where it varies. An unknown
// type gives 0.
func (t Type) fixedSize() int {
	switch t {
	case String, Binary:
		return -1
	case Boolean:
		return 1
	case Int32:
		return 4
	case Int64, Double, DateTime:
		return 8
	case GUID:
		return 16
	}
	return 0
}
