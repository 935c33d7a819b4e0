package primary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// TakeOutcome is what became of a unit that was to be taken from the secondary.
type TakeOutcome uint8

// The outcomes of a unit.
const (
	// TakeLater: the command was full before the unit. It may be repeated.
	TakeLater TakeOutcome = iota
	// TakeTaken: records make the unit what it is at the secondary. What it was here is in the lost-and-found.
	TakeTaken
	// TakeSame: the rows are those of the secondary. From here on the unit is the primary's.
	TakeSame
	// TakeWritten: a client has written the unit since the settlement began, or it was TakeSame or TakeLarge. It stays as
	// it is.
	TakeWritten
	// TakeLarge: the unit has too many rows here or at the secondary. From here on it is the primary's: once rows of it
	// are sent, the secondary may have few enough of them, and they are no longer what it had.
	TakeLarge
	// TakeGone: the generation of the unit is closed. Nothing of it is compared any more.
	TakeGone
	// TakeNoPayload: the node that evaluates lacks payload that the unit names.
	TakeNoPayload
	// TakeUnreadable: the unit cannot be decoded.
	TakeUnreadable
	// TakeRefused: the stream is not settled for the secondary's side from the base, or no longer.
	TakeRefused
	// TakeAgain: what was read at the secondary is not of a record that is known here. It has to be read again.
	TakeAgain
)

// Bounds of a Take.
const (
	// takeUnitsMax is how many units it names.
	takeUnitsMax = 512
	// takeRowsMax is how many rows of a unit may be here, and takeHereMax how many bytes of them: what one command keeps
	// in the lost-and-found is one entry.
	takeRowsMax = 10_000
	takeHereMax = 2 << 20
	// takeBytesMax is how many bytes of rows it stages or keeps, but for the last unit.
	takeBytesMax = 1 << 20
)

// Take is the step of a settlement that keeps the secondary's side (R16): it makes units of a stream at the primary
// what they are at the secondary. What they were is kept in the lost-and-found of this location by the same group.
// The records are numbered like those of any other change, so that both ends have the same in the end, and what
// clients write is ordered with it. A unit that a client has written since the settlement began is left alone: see
// ranges.Tx.Written. A command that is late or repeated does no harm.
type Take struct {
	// Stream is the one of the units, and Base what its settlement began from.
	Stream geo.Stream
	Base   geo.Head
	// At is the cursor of the secondary in the state of which Units are, the base or above. It is zero from a process of
	// an earlier version. If this range was recovered with loss since, the secondary may have applied a record that it
	// lost: a client's, of which it does not know any more that it wrote the unit.
	At geo.Head `json:",omitzero"`
	// Units are read at the secondary after its cursor was set to the base.
	Units []TakeUnit

	// outcomes are results.
	outcomes []TakeOutcome
}

// TakeUnit is a unit (keys.Partition.Unit) as the secondary has it, without rows if it has none, or if it is Large: of
// too many rows there.
type TakeUnit struct {
	Key   []byte
	Large bool `json:",omitempty"`
	Rows  []TakeRow
}

// TakeRow is one row of a unit, with its whole key.
type TakeRow struct{ Key, Value []byte }

// Take evaluates a take in the range of its stream, and returns the outcome of each unit.
func (p *Primary) Take(ctx context.Context, t *Take) ([]TakeOutcome, error) {
	if err := p.stamp.Submit(ctx, t.Stream.Range, t); err != nil {
		return nil, err // It may be evaluated yet.
	}
	return t.outcomes, nil
}

// Evaluate implements ranges.Command. It sets all results, since it may run again.
func (t *Take) Evaluate(tx *ranges.Tx) error {
	t.outcomes = make([]TakeOutcome, len(t.Units))
	gate := tx.Gate(t.Stream.Account)
	why, _ := tx.Stopped(t.Stream)
	if gate.Role != change.RolePrimary || !gate.Open || !gate.Numbered || gate.Epoch != t.Stream.Epoch ||
		why.Reason != change.StopTaking || why.Here != t.Base {
		for i := range t.outcomes {
			t.outcomes[i] = TakeRefused
		}
		return nil
	}
	if known, err := t.known(tx); err != nil || !known {
		for i := range t.outcomes {
			t.outcomes[i] = TakeAgain
		}
		return err
	}
	staged := 0
	for i := range t.Units {
		if staged >= takeBytesMax {
			break
		}
		var size int
		var err error
		if t.outcomes[i], size, err = t.unit(tx, &t.Units[i]); err != nil {
			return err
		}
		staged += size
	}
	return nil
}

// known reports whether the secondary was at a record of this range when the units were read.
func (t *Take) known(tx *ranges.Tx) (bool, error) {
	if t.At == (geo.Head{}) {
		return true, nil
	}
	return tx.Holds(t.Stream, t.At)
}

// unit takes one unit, and returns how many bytes of rows it stages and keeps.
func (t *Take) unit(tx *ranges.Tx, u *TakeUnit) (TakeOutcome, int, error) {
	p, row, err := keys.ParsePartition(u.Key)
	if err != nil || p.Service != ranges.Service(tx.Range()) || p.Account != t.Stream.Account || p.Lane() != t.Stream.Lane || !bytes.Equal(p.Unit(row), u.Key) {
		return TakeRefused, 0, nil //nolint:nilerr // The other location named it. It is no unit of the stream.
	}
	if closed, err := tx.GenerationClosed(keys.ClosedGeneration(tx.Range(), p.Service, p.Account, p.Container, p.Generation)); closed || err != nil {
		return TakeGone, 0, err
	}
	if written, err := tx.Written(t.Stream, t.Base.Seq, u.Key); written || err != nil {
		return TakeWritten, 0, err
	}
	rows, outcome := rowsThere(u)
	if outcome != TakeTaken {
		return outcome, 0, nil
	}
	before, large, err := rowsHere(tx, u.Key)
	if err != nil {
		return TakeLater, 0, err
	}
	if large || u.Large {
		return TakeLarge, len(u.Key), tx.Leave(p, row)
	}
	differ, kept, err := difference(rows, before)
	if err != nil {
		return TakeUnreadable, 0, nil //nolint:nilerr // A key that is here is none.
	}
	if len(differ) == 0 {
		return TakeSame, len(u.Key), tx.Leave(p, row)
	}
	size := 0
	for _, r := range differ {
		for _, ref := range r.chunks {
			if !tx.HasChunk(ref) {
				return TakeNoPayload, 0, nil
			}
		}
		size += r.size()
	}
	for _, k := range kept {
		chunks, _ := blobs.RowChunks(k.Key, k.Value) // Of a row that cannot be decoded the bytes are kept.
		if err := tx.KeepFound(t.Stream, t.Base.Seq, k.Key, k.Value, chunks); err != nil {
			return TakeTaken, 0, err
		}
		size += len(k.Key) + len(k.Value)
	}
	return TakeTaken, size, stageRows(tx, differ)
}

// thereRow is a row of the secondary.
type thereRow struct {
	row
	key []byte
}

// rowsThere decodes the rows of a unit as the secondary has it.
func rowsThere(u *TakeUnit) (out []thereRow, outcome TakeOutcome) {
	for i, r := range u.Rows {
		if !bytes.HasPrefix(r.Key, u.Key) || i > 0 && bytes.Compare(u.Rows[i-1].Key, r.Key) >= 0 {
			return nil, TakeRefused
		}
		one, err := rowOf(r.Key, r.Value, true)
		if err != nil {
			return nil, TakeUnreadable
		}
		out = append(out, thereRow{one, r.Key})
	}
	return out, TakeTaken
}

// rowsHere returns the rows of a unit here.
func rowsHere(tx *ranges.Tx, unit []byte) (out []TakeRow, large bool, err error) {
	size := 0
	err = tx.Rows(unit, keys.PrefixEnd(unit), func(key, value []byte) bool {
		out = append(out, TakeRow{key, value})
		size += len(key) + len(value)
		large = len(out) > takeRowsMax || size > takeHereMax
		return !large
	})
	return out, large, err
}

// difference returns the rows that make here what there is, and those of here that they overwrite or delete. Both
// are in the order of their keys.
func difference(there []thereRow, here []TakeRow) (differ []row, kept []TakeRow, err error) {
	for len(there) > 0 || len(here) > 0 {
		order := -1
		switch {
		case len(there) == 0:
			order = 1
		case len(here) > 0:
			order = bytes.Compare(there[0].key, here[0].Key)
		}
		switch {
		case order < 0:
			differ, there = append(differ, there[0].row), there[1:]
			continue
		case order > 0:
			gone, err := rowOf(here[0].Key, nil, false)
			if err != nil {
				return nil, nil, err
			}
			differ, kept = append(differ, gone), append(kept, here[0])
		default:
			if !bytes.Equal(there[0].op.Value, here[0].Value) {
				differ, kept = append(differ, there[0].row), append(kept, here[0])
			}
			there = there[1:]
		}
		here = here[1:]
	}
	return differ, kept, nil
}

// TakeChunks returns the payload that the rows of a unit name, as far as they can be decoded.
func (u *TakeUnit) TakeChunks() (out []extent.Ref) {
	for _, r := range u.Rows {
		refs, _ := blobs.RowChunks(r.Key, r.Value) // Take finds it unreadable.
		out = append(out, refs...)
	}
	return out
}

// kindTake is Take's kind.
const kindTake = "primary.take"

// errTake: bytes that are no encoded Take, or no result of one.
var errTake = errors.New("primary: malformed take of rows from the secondary")

// Rehearses implements ranges.Rehearsed: it reads many rows, not side by side.
func (*Take) Rehearses() (always bool) { return true }

// Kind implements ranges.Portable.
func (t *Take) Kind() string { return kindTake }

// Encode implements ranges.Portable.
func (t *Take) Encode() []byte {
	b, _ := json.Marshal(t) // It has no value that JSON lacks.
	return b
}

func parseTake(b []byte) (ranges.Portable, error) {
	t := &Take{}
	if err := json.Unmarshal(b, t); err != nil {
		return nil, fmt.Errorf("%w: %w", errTake, err)
	}
	if len(t.Units) > takeUnitsMax || !t.Stream.Account.Valid() || t.Stream.Lane >= geo.LaneCount {
		return nil, fmt.Errorf("%w: %d units of stream %s", errTake, len(t.Units), t.Stream)
	}
	return t, nil
}

// EncodeResult implements ranges.Portable: a byte for each unit.
func (t *Take) EncodeResult() []byte {
	out := make([]byte, 0, len(t.outcomes))
	for _, o := range t.outcomes {
		out = append(out, byte(o))
	}
	return out
}

// DecodeResult implements ranges.Portable.
func (t *Take) DecodeResult(b []byte) error {
	if len(b) != len(t.Units) {
		return fmt.Errorf("%w: %d outcomes of %d units", errTake, len(b), len(t.Units))
	}
	t.outcomes = make([]TakeOutcome, len(b))
	for i, o := range b {
		if t.outcomes[i] = TakeOutcome(o); t.outcomes[i] > TakeAgain {
			return fmt.Errorf("%w: outcome %d", errTake, o)
		}
	}
	return nil
}
