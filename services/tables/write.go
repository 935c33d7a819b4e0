package tables

import (
	"encoding/binary"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Op is a write operation on one entity (protocol/table.md 9).
type Op int

// The operations. Update and Merge need the entity to exist.
const (
	Insert Op = iota + 1
	Update
	Merge
	InsertOrReplace
	InsertOrMerge
	Delete
)

// Match is the If-Match of a write: Any, or the tag the entity must have.
type Match struct {
	Any bool
	// Tag is the Timestamp in the tag; zero never matches.
	Tag geo.Timestamp
}

// Write is one write of one entity.
type Write struct {
	Op         Op
	Account    geo.Account
	Table      string
	Generation keys.Generation
	PK, RK     string
	// Match applies to Update, Merge and Delete.
	Match Match
	// Props is the encoded property list (package entity).
	Props []byte

	// Timestamp is the result: the entity's new Timestamp.
	Timestamp geo.Timestamp
}

// Partition implements services.Write.
func (w *Write) Partition() keys.Partition { return Partition(w.Account, w.Table, w.Generation, w.PK) }

// Partition is all entities of one table with one PartitionKey.
func Partition(a geo.Account, table string, g keys.Generation, pk string) keys.Partition {
	return keys.Partition{Service: geo.Table, Account: a, Container: keys.TableContainer(table), Generation: g, Object: pk}
}

// Gone implements services.Write.
func (w *Write) Gone() error { return storageerr.TableNotFound }

// Deletes implements services.Deletion.
func (w *Write) Deletes() bool { return w.Op == Delete }

// Evaluate implements services.Write.
func (w *Write) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	row := keys.AppendString(nil, w.RK)
	stored, ok, err := get.Get(append(w.Partition().Append(nil), row...))
	if err != nil {
		return services.Effect{}, err
	}
	if err := w.check(stored, ok); err != nil {
		return services.Effect{}, err
	}
	w.Timestamp = at
	if w.Op == Delete {
		return services.Effect{Ops: []change.Op{{Delete: true, Row: row}}}, nil
	}
	props := w.Props
	if ok && (w.Op == Merge || w.Op == InsertOrMerge) {
		_, old, err := parseValue(stored)
		if err != nil {
			return services.Effect{}, err
		}
		if props, err = entity.Merge(old, w.Props); err != nil {
			return services.Effect{}, err
		}
		if err := entity.CheckSize(w.PK, w.RK, props); err != nil {
			return services.Effect{}, err
		}
	}
	return services.Effect{Ops: []change.Op{{Row: row, Value: appendValue(nil, at, props)}}}, nil
}

// check tests existence and ETag (protocol/table.md 9.5, 9.7, 9.8).
func (w *Write) check(stored []byte, exists bool) error {
	switch w.Op {
	case InsertOrReplace, InsertOrMerge:
		return nil
	case Insert:
		if exists {
			return storageerr.EntityAlreadyExists
		}
		return nil
	}
	if !exists {
		return storageerr.ResourceNotFound
	}
	if w.Match.Any {
		return nil
	}
	ts, _, err := parseValue(stored)
	if err == nil && ts != w.Match.Tag {
		err = storageerr.UpdateConditionNotMet
	}
	return err
}

// valueFormat is the first byte of a stored entity: then the Timestamp, 8 bytes
// little-endian, then the property list. See docs/format/entity.md.
const valueFormat = 1

const valueHeader = 9

func appendValue(dst []byte, at geo.Timestamp, props []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, valueHeader+len(props))
	}
	dst = append(dst, valueFormat)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	return append(dst, props...)
}

func parseValue(v []byte) (geo.Timestamp, []byte, error) {
	if len(v) < valueHeader || v[0] != valueFormat {
		return 0, nil, keys.ErrMalformed
	}
	return geo.Timestamp(binary.LittleEndian.Uint64(v[1:])), v[valueHeader:], nil
}
