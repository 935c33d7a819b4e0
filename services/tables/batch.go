package tables

import (
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

const (
	// BatchMax is how many writes one Batch takes (protocol/table.md 13.1).
	BatchMax = 100
	// effectBytesMax bounds the rows that one Batch may write, in bytes. A merge of a few bytes
	// writes the whole row, so a body within its limit can have an effect above that of a change;
	// the rest is for partition and header.
	effectBytesMax = change.RecordBytesMax - 128<<10
	// opBytes exceeds what a change adds to a row and its value.
	opBytes = 16
)

// Batch is an entity group transaction: writes of entities of one partition, of which
// all have their effect at one commit time, or none has any (protocol/table.md 13). Make
// it with Add.
type Batch struct {
	writes []*Write
	rows   map[string]struct{}
}

// Add takes w in as the next write. It fails for too many writes, for another table or partition
// than that of the first, and for an entity that is in the batch already. After an error the
// batch is unchanged. The writes of a batch have one Account and Generation.
func (b *Batch) Add(w *Write) error {
	if len(b.writes) == BatchMax {
		return storageerr.BatchTooLong
	}
	if len(b.writes) > 0 {
		first := b.writes[0]
		if w.PK != first.PK || keys.TableContainer(w.Table) != keys.TableContainer(first.Table) {
			return storageerr.BatchPartitionsDiffer
		}
	} else {
		b.rows = make(map[string]struct{})
	}
	if _, twice := b.rows[w.RK]; twice {
		return storageerr.BatchRowTwice
	}
	b.rows[w.RK] = struct{}{}
	b.writes = append(b.writes, w)
	return nil
}

// Writes are the writes in the order added, each with its Timestamp once the batch is
// committed.
func (b *Batch) Writes() []*Write { return b.writes }

// BatchError is the error of one write of a batch. Nothing was changed.
type BatchError struct {
	// Index is the place of the write, from zero.
	Index int
	Err   error
}

// Error implements error.
func (e *BatchError) Error() string { return fmt.Sprintf("operation %d: %v", e.Index, e.Err) }

// Unwrap returns Err.
func (e *BatchError) Unwrap() error { return e.Err }

// Partition implements services.Write.
func (b *Batch) Partition() keys.Partition { return b.writes[0].Partition() }

// Gone implements services.Write.
func (b *Batch) Gone() error { return &BatchError{Err: b.writes[0].Gone()} }

// Deletes implements services.Deletion.
func (b *Batch) Deletes() bool {
	return !slices.ContainsFunc(b.writes, func(w *Write) bool { return !w.Deletes() })
}

// Evaluate implements services.Write: the writes in their order, up to the first that fails,
// whose error is a BatchError. No two writes are of one entity, so each sees the state before the
// batch.
func (b *Batch) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	all := services.Effect{Ops: make([]change.Op, 0, len(b.writes))}
	size := 0
	for i, w := range b.writes {
		effect, err := w.Evaluate(get, at)
		if err != nil {
			return services.Effect{}, &BatchError{Index: i, Err: err}
		}
		for _, op := range effect.Ops {
			size += opBytes + len(op.Row) + len(op.Value)
		}
		if size > effectBytesMax {
			return services.Effect{}, &BatchError{Index: i, Err: storageerr.BatchEffectTooLarge}
		}
		all.Ops = append(all.Ops, effect.Ops...)
	}
	return all, nil
}
