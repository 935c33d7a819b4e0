package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/blobs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// Bounds of one salvageRows: rows and bytes that it looks at, and bytes that it keeps, but for the last row.
const (
	salvageRowsMax   = 4000
	salvageBytesMax  = 4 << 20
	salvageKeptBytes = 1 << 20
)

// salvageRows is the command that keeps, in the lost-and-found of this location, the rows of a copy in a span of a range
// that the primary does not have, or has with another value (R17). It changes nothing else. A row that is kept already stays
// as it is, so that the command may be repeated.
type salvageRows struct {
	salvageBody
	out salvageResult
}

// salvageBody is an encoded salvageRows, and salvageResult its result.
type (
	salvageBody struct {
		Account geo.Account `json:"account"`
		// By is the epoch for which the copy is deleted, zero where the rows are only counted.
		By geo.Epoch `json:"by,omitzero"`
		// Start and End are the span of keys. Without one the command returns how far the streams of the copy are.
		Start []byte       `json:"start,omitempty"`
		End   []byte       `json:"end,omitempty"`
		Lanes verify.Lanes `json:"lanes,omitempty"`
		// There are the rows of the span at the primary: see verify.ParseSums.
		There []byte `json:"there,omitempty"`
	}
	salvageResult struct {
		// Gone: the range has left the epoch of the copy, which is deleted, or soon will be.
		Gone bool `json:"gone,omitempty"`
		// Was is the epoch of the copy. Whole: in no lane its rows are known to be the primary's. Stopped are the lanes that may
		// not go on, and At is how far the streams are.
		Was     geo.Epoch        `json:"was,omitzero"`
		Whole   bool             `json:"whole,omitempty"`
		Stopped verify.Lanes     `json:"stopped,omitempty"`
		At      []salvagedStream `json:"at,omitempty"`
		// Rows were kept, or counted, with Bytes, and Payload bytes that they name. Next is where to go on, nil at the end.
		Rows    uint64 `json:"rows,omitempty"`
		Bytes   uint64 `json:"bytes,omitempty"`
		Payload uint64 `json:"payload,omitempty"`
		Next    []byte `json:"next,omitempty"`
	}
	// salvagedStream is how far a stream is applied, and when its last record was committed.
	salvagedStream struct {
		Lane geo.Lane      `json:"lane"`
		Head geo.Head      `json:"head"`
		Time geo.Timestamp `json:"time"`
	}
)

// Evaluate implements ranges.Command.
func (c *salvageRows) Evaluate(tx *ranges.Tx) error {
	c.out = salvageResult{}
	gate := tx.Gate(c.Account)
	switch {
	case c.By != (geo.Epoch{}) && gate.Epoch.Compare(c.By) >= 0:
		c.out.Gone = true
		return nil
	case c.End == nil:
		c.streams(tx, gate)
		return nil
	}
	return c.keep(tx)
}

// streams reports how far the streams of the copy are. A closed gate is that of a former primary, whose rows are of no
// stream that it has received, or of a copy that is frozen.
func (c *salvageRows) streams(tx *ranges.Tx, gate change.Gate) {
	c.out.Was, c.out.Whole = gate.Epoch, gate.Role != change.RoleSecondary || !gate.Open
	for lane := range geo.Lane(geo.LaneCount) {
		s := geo.Stream{Account: c.Account, Epoch: gate.Epoch, Range: tx.Range(), Lane: lane}
		if why, _ := tx.Stopped(s); why.Reason != change.NotStopped && why.Reason != change.StopBudget {
			c.out.Stopped = c.out.Stopped.With(lane)
		}
		if at := tx.Cursor(s); at.Applied.Seq > 0 {
			c.out.At = append(c.out.At, salvagedStream{lane, at.Applied, at.Time})
		}
	}
}

// salvagedRow is a row that is kept.
type salvagedRow struct {
	lane       geo.Lane
	key, value []byte
	chunks     []extent.Ref
}

func (c *salvageRows) keep(tx *ranges.Tx) error {
	there, err := verify.ParseSums(c.There)
	if err != nil {
		return errors.Join(record.ErrCommand, err)
	}
	var list []salvagedRow
	var unparsed error
	rows, bytes, kept := 0, 0, 0
	err = tx.Rows(c.Start, c.End, func(key, value []byte) bool {
		if rows == salvageRowsMax || bytes >= salvageBytesMax || kept >= salvageKeptBytes {
			c.out.Next = key
			return false
		}
		rows, bytes = rows+1, bytes+len(key)+len(value)
		p, _, err := keys.ParsePartition(key)
		if unparsed = err; err != nil {
			return false
		}
		lane := p.Lane()
		if !c.Lanes.Has(lane) {
			return true
		}
		if sum, ok := there[string(key)]; ok && sum == verify.RowSum(key, value) {
			return true
		}
		chunks, _ := blobs.RowChunks(key, value) // Of a row that cannot be decoded the bytes are kept.
		list = append(list, salvagedRow{lane, key, value, chunks})
		kept += len(key) + len(value)
		return true
	})
	if err = errors.Join(err, unparsed); err != nil {
		return err
	}
	for _, r := range list {
		c.out.Rows++
		c.out.Bytes += uint64(len(r.key) + len(r.value))
		for _, ref := range r.chunks {
			c.out.Payload += uint64(ref.Length)
		}
		if c.By == (geo.Epoch{}) {
			continue
		}
		// The base is none: the epoch names the deletion, which is the only one of it.
		if err := tx.KeepFound(geo.Stream{Account: c.Account, Epoch: c.By, Range: tx.Range(), Lane: r.lane}, 0, r.key, r.value, r.chunks); err != nil {
			return err
		}
	}
	return nil
}

// Rehearses implements ranges.Rehearsed: it reads many rows, not side by side.
func (*salvageRows) Rehearses() (always bool) { return true }

// kindSalvageRows is the kind of salvageRows. It is on the wire: never rename it.
const kindSalvageRows = "directory.salvageRows"

// Kind implements ranges.Portable.
func (c *salvageRows) Kind() string { return kindSalvageRows }

// Encode implements ranges.Portable.
func (c *salvageRows) Encode() []byte {
	b, _ := json.Marshal(c.salvageBody) // It has no value that JSON lacks.
	return b
}

func parseSalvageRows(b []byte) (*salvageRows, error) {
	var c salvageRows
	if err := json.Unmarshal(b, &c.salvageBody); err != nil {
		return nil, errors.Join(record.ErrCommand, err)
	}
	if !c.Account.Valid() {
		return nil, fmt.Errorf("%w: rows of account %q", record.ErrCommand, c.Account)
	}
	if c.End != nil {
		if p, _, err := keys.ParseSpan(c.Start, c.End); err != nil || p.Account != c.Account {
			return nil, fmt.Errorf("%w: rows of account %q from %x to %x", record.ErrCommand, c.Account, c.Start, c.End)
		}
	}
	return &c, nil
}

// EncodeResult implements ranges.Portable.
func (c *salvageRows) EncodeResult() []byte {
	b, _ := json.Marshal(c.out) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *salvageRows) DecodeResult(b []byte) error {
	c.out = salvageResult{}
	return json.Unmarshal(b, &c.out)
}
