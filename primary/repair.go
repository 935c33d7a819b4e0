package primary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// RepairOutcome is what became of a row that was to be repaired.
type RepairOutcome uint8

// The outcomes of a row.
const (
	// RepairLater: the command was full before the row. It may be repeated.
	RepairLater RepairOutcome = iota
	// RepairSet: a record sets the row to what it is at the primary.
	RepairSet
	// RepairDeleted: a record deletes the row, which the primary does not have.
	RepairDeleted
	// RepairGone: the generation of the row was closed meanwhile. Nothing of it is compared any more.
	RepairGone
	// RepairNoPayload: the node that evaluates lacks payload that the row names.
	RepairNoPayload
	// RepairUnreadable: the row cannot be decoded at the primary.
	RepairUnreadable
	// RepairRefused: this location is not the primary in the epoch of the repair, or ships no changes.
	RepairRefused
	// RepairSettling: the stream is settled for the secondary's side, and the unit of the row may still be taken from there
	// whole: see ranges.Tx.Takes. The rows of a unit are sent in several records, and between two of them the secondary
	// has neither what it had nor what is here.
	RepairSettling
)

// Bounds of one Repair.
const (
	// RepairRowsMax is how many rows it names.
	RepairRowsMax = 512
	// repairBytesMax is how many bytes of rows it stages, but for the last row. The other rows are left
	// for later.
	repairBytesMax = 1 << 20
)

// Repair makes rows of the secondary equal to those of the primary. It reads each row when it is
// evaluated, and stages a record that sets it, or deletes it where the primary has none. So a
// repair is one more change of its partition, in order with all others, and what clients change
// meanwhile is never undone. A repair that is repeated does no harm.
type Repair struct {
	Account geo.Account
	Service geo.Service
	// Epoch is the one that the rows were compared in.
	Epoch geo.Epoch
	// Keys are the rows, RepairRowsMax at most. Rows of a partition should follow each other.
	Keys [][]byte

	// outcomes and bytes are results.
	outcomes []RepairOutcome
	bytes    uint64
}

// Repair evaluates a repair in a range. It returns the outcome of each row, and how many bytes of rows
// and payload the records name. After an error some rows may have been repaired.
func (p *Primary) Repair(ctx context.Context, id geo.RangeID, r *Repair) (outcomes []RepairOutcome, bytes uint64, err error) {
	if err := p.stamp.Submit(ctx, id, r); err != nil {
		return nil, 0, err
	}
	return r.outcomes, r.bytes, nil
}

// Evaluate implements ranges.Command. It sets all results, since it may run again.
func (r *Repair) Evaluate(tx *ranges.Tx) error {
	r.outcomes, r.bytes = make([]RepairOutcome, len(r.Keys)), 0
	gate := tx.Gate(r.Account)
	if gate.Role != change.RolePrimary || !gate.Open || !gate.Numbered || gate.Epoch != r.Epoch {
		for i := range r.outcomes {
			r.outcomes[i] = RepairRefused
		}
		return nil
	}
	var rows []row
	staged := 0
	for i, key := range r.Keys {
		if staged >= repairBytesMax {
			break
		}
		one, outcome, err := r.row(tx, key)
		if err != nil {
			return err
		}
		if r.outcomes[i] = outcome; outcome != RepairSet && outcome != RepairDeleted {
			continue
		}
		rows = append(rows, one)
		size := len(key) + len(one.op.Value)
		staged += size
		r.bytes += uint64(size)
		for _, ref := range one.chunks {
			r.bytes += uint64(ref.Length)
		}
	}
	return stageRows(tx, rows)
}

// Rehearses implements ranges.Rehearsed: it reads many rows, not side by side.
func (*Repair) Rehearses() (always bool) { return true }

// row reads one row.
func (r *Repair) row(tx *ranges.Tx, key []byte) (row, RepairOutcome, error) {
	p, in, err := keys.ParsePartition(key)
	if err != nil || p.Account != r.Account || p.Service != r.Service {
		return row{}, RepairRefused, nil //nolint:nilerr // The other location named it. It is no row of the account in this range.
	}
	if p.Generation != (keys.Generation{}) {
		closed, err := tx.GenerationClosed(keys.ClosedGeneration(tx.Range(), p.Service, p.Account, p.Container, p.Generation))
		if closed || err != nil {
			return row{}, RepairGone, err
		}
	}
	if takes, err := tx.Takes(p, in); takes || err != nil {
		return row{}, RepairSettling, err
	}
	value, present, err := tx.Get(key)
	if err != nil {
		return row{}, RepairLater, err
	}
	out, err := rowOf(key, value, present)
	if err != nil {
		return row{}, RepairUnreadable, nil //nolint:nilerr // The primary's row is damaged. What the secondary has may be better.
	}
	for _, ref := range out.chunks {
		if !tx.HasChunk(ref) {
			return row{}, RepairNoPayload, nil
		}
	}
	if present {
		return out, RepairSet, nil
	}
	return out, RepairDeleted, nil
}

// kindRepair is Repair's kind.
const kindRepair = "primary.repair"

// errRepair: bytes that are no encoded Repair, or no result of one.
var errRepair = errors.New("primary: malformed repair")

// repairBody is an encoded Repair.
type repairBody struct {
	Account geo.Account
	Service geo.Service
	Epoch   geo.Epoch
	Keys    [][]byte
}

// repairResult is an encoded result. Outcomes has a byte for each row.
type repairResult struct {
	Outcomes []byte
	Bytes    uint64
}

// Kind implements ranges.Portable.
func (r *Repair) Kind() string { return kindRepair }

// Encode implements ranges.Portable.
func (r *Repair) Encode() []byte {
	b, _ := json.Marshal(repairBody{r.Account, r.Service, r.Epoch, r.Keys}) // It has no value that JSON lacks.
	return b
}

func parseRepair(b []byte) (ranges.Portable, error) {
	var body repairBody
	if err := json.Unmarshal(b, &body); err != nil {
		return nil, fmt.Errorf("%w: %w", errRepair, err)
	}
	if len(body.Keys) > RepairRowsMax || !body.Account.Valid() {
		return nil, fmt.Errorf("%w: %d rows of account %q", errRepair, len(body.Keys), body.Account)
	}
	return &Repair{Account: body.Account, Service: body.Service, Epoch: body.Epoch, Keys: body.Keys}, nil
}

// EncodeResult implements ranges.Portable.
func (r *Repair) EncodeResult() []byte {
	out := repairResult{Bytes: r.bytes}
	for _, o := range r.outcomes {
		out.Outcomes = append(out.Outcomes, byte(o))
	}
	b, _ := json.Marshal(out) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (r *Repair) DecodeResult(b []byte) error {
	var in repairResult
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("%w: %w", errRepair, err)
	}
	if len(in.Outcomes) != len(r.Keys) {
		return fmt.Errorf("%w: %d outcomes of %d rows", errRepair, len(in.Outcomes), len(r.Keys))
	}
	r.outcomes, r.bytes = make([]RepairOutcome, len(r.Keys)), in.Bytes
	for i, o := range in.Outcomes {
		if r.outcomes[i] = RepairOutcome(o); r.outcomes[i] > RepairSettling {
			return fmt.Errorf("%w: outcome %d", errRepair, o)
		}
	}
	return nil
}
