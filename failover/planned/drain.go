package planned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// heads are where the streams of an account's epoch end.
type heads []streamHead

// streamHead is the last record of a stream of one (account, epoch).
type streamHead struct {
	Range geo.RangeID `json:"range"`
	Lane  geo.Lane    `json:"lane"`
	Seq   geo.Seq     `json:"seq"`
	Hash  geo.Hash    `json:"hash"`
}

// of returns those of a source range.
func (h heads) of(r geo.RangeID) (out heads) {
	for _, s := range h {
		if s.Range == r {
			out = append(out, s)
		}
	}
	return out
}

// ends asks each range where the account's streams of its epoch end, and whether the other location has acknowledged
// all of that: applied it, payload included (R14). waiting is how many bytes it has not.
func (mv *Mover) ends(ctx context.Context, a catalog.Account) (ends heads, waiting uint64, err error) {
	found, err := mv.drains(ctx, a, false)
	for _, f := range found {
		ends = append(ends, f.Heads...)
	}
	return ends, waitingOf(found), err
}

// drains asks each range how far its streams of the account are acknowledged, in the order of route.Table.Everywhere. With
// closes each commits a closed record.
func (mv *Mover) drains(ctx context.Context, a catalog.Account, closes bool) (found []drain, err error) {
	for _, r := range mv.stamp.Route().Everywhere(a.Name) {
		cmd := &drained{account: a.Name, gate: record.PrimaryGate(&a), closes: closes}
		if err := mv.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return nil, fmt.Errorf("the streams of the %s range: %w", r.Service, err)
		}
		found = append(found, cmd.found)
	}
	return found, nil
}

// waitingOf is how many bytes of some ranges are not acknowledged.
func waitingOf(found []drain) (waiting uint64) {
	for _, f := range found {
		waiting += f.Waiting
	}
	return waiting
}

// drained is a command that finds where a range's streams of an account end. It is evaluated like a write, so that it sees
// every write before it. It has no effect but for a closed record. kv.ErrBusy: the range does not have the gate, or its gates
// are not compared since it was recovered with loss.
type drained struct {
	account geo.Account
	gate    change.Gate
	// closes: the range commits a closed record.
	closes bool
	found  drain
}

// drain is how far a range's streams of an account are acknowledged.
type drain struct {
	Heads heads `json:"heads,omitempty"`
	// Waiting is how many bytes of records and payload are not acknowledged; at least one for each stream of which
	// something is not.
	Waiting uint64 `json:"waiting,omitempty"`
	// Behind are the streams of which something is not acknowledged, each with the last number that is; 0 for one that is
	// stopped.
	Behind []streamBehind `json:"behind,omitempty"`
	// Closed is the time of the closed record; zero if there was to be none.
	Closed geo.Timestamp `json:"closed,omitempty"`
}

// streamBehind is up to where a stream is acknowledged.
type streamBehind struct {
	Lane geo.Lane `json:"lane"`
	Seq  geo.Seq  `json:"seq,omitempty"`
}

// Evaluate implements ranges.Command.
func (c *drained) Evaluate(tx *ranges.Tx) error {
	c.found = drain{}
	open := plantedbugs.Planted(plantedbugs.OfferedOpen)
	if tx.Gate(c.account) != c.gate && !open || tx.Uncompared() {
		return kv.ErrBusy
	}
	for lane := range geo.Lane(geo.LaneCount) {
		s := geo.Stream{Account: c.account, Epoch: c.gate.Epoch, Range: tx.Range(), Lane: lane}
		head := tx.Head(s)
		if head.Seq == 0 {
			continue
		}
		c.found.Heads = append(c.found.Heads, streamHead{Range: s.Range, Lane: lane, Seq: head.Seq, Hash: head.Hash})
		acked := tx.Acknowledged(s)
		if _, stopped := tx.Stopped(s); stopped {
			acked = 0
		}
		if acked != head.Seq && !plantedbugs.Planted(plantedbugs.TakenUndrained) {
			c.found.Waiting++
			c.found.Behind = append(c.found.Behind, streamBehind{lane, acked})
		}
	}
	if waits := tx.Waiting(c.account); c.found.Waiting > 0 {
		c.found.Waiting += waits.Bytes + waits.Payload
	}
	if c.closes {
		c.found.Closed = tx.ClosedAfter(0)
	}
	return nil
}

// kindDrained is the kind of drained. It is on the wire: never rename it.
const kindDrained = "directory.drained"

// Kind implements ranges.Portable.
func (c *drained) Kind() string { return kindDrained }

// Encode implements ranges.Portable: as a setGate of the gate that the range is to have, which closes where it has a time
// that later ones are above. Earlier versions do not look at that.
func (c *drained) Encode() []byte {
	set := &record.SetGate{Account: c.account, Gate: c.gate}
	if c.closes {
		set.After = 1
	}
	return set.Encode()
}

func parseDrained(b []byte) (*drained, error) {
	c, err := record.ParseSetGate(b)
	if err != nil {
		return nil, err
	}
	return &drained{account: c.Account, gate: c.Gate, closes: c.After != 0}, nil
}

// EncodeResult implements ranges.Portable.
func (c *drained) EncodeResult() []byte {
	b, _ := json.Marshal(c.found) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *drained) DecodeResult(b []byte) error {
	c.found = drain{}
	return json.Unmarshal(b, &c.found)
}

// errBehind: the location has not applied all that the former primary has committed.
var errBehind = errors.New("directory: the streams are not applied up to their ends")

// reach returns nil if the ranges here have applied an account's streams of an epoch of the other location up to
// their ends, and no further; else errBehind.
func (mv *Mover) reach(ctx context.Context, a geo.Account, e geo.Epoch, ends heads) error {
	for _, r := range mv.stamp.Route().Everywhere(a) {
		cmd := &reached{Account: a, Epoch: e, Heads: ends.of(r.ID)}
		if err := mv.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return fmt.Errorf("the streams of the %s range: %w", r.Service, err)
		}
		if cmd.behind {
			return fmt.Errorf("the streams of the %s range: %w", r.Service, errBehind)
		}
	}
	return nil
}

// reached is a command without an effect that finds whether a range has applied streams of an account up to their ends.
// The records of a range of the other location are in the range here that has its id (R14).
type reached struct {
	Account geo.Account `json:"account"`
	Epoch   geo.Epoch   `json:"epoch"`
	Heads   heads       `json:"heads"`
	behind  bool
}

// Evaluate implements ranges.Command.
func (c *reached) Evaluate(tx *ranges.Tx) error {
	c.behind = !c.Heads.applied(tx, c.Account, c.Epoch)
	return nil
}

// applied reports whether the range has applied streams of an account's epoch up to their ends, and no further. A range
// that was recovered with loss may show what it had: it has not, until its gates are compared.
func (h heads) applied(tx *ranges.Tx, a geo.Account, e geo.Epoch) bool {
	gate := tx.Gate(a)
	if plantedbugs.Planted(plantedbugs.TakenUndrained) {
		return true
	}
	if tx.Uncompared() || gate.Epoch != e || gate.Role != change.RoleSecondary || !gate.Open {
		return false
	}
	for _, s := range h {
		st := geo.Stream{Account: a, Epoch: e, Range: s.Range, Lane: s.Lane}
		if _, stopped := tx.Stopped(st); stopped || tx.Cursor(st).Applied != (geo.Head{Seq: s.Seq, Hash: s.Hash}) {
			return false
		}
	}
	return true
}

// kindReached is the kind of reached. It is on the wire: never rename it.
const kindReached = "directory.reached"

// Kind implements ranges.Portable.
func (c *reached) Kind() string { return kindReached }

// Encode implements ranges.Portable.
func (c *reached) Encode() []byte {
	b, _ := json.Marshal(c) // It has no value that JSON lacks.
	return b
}

func parseReached(b []byte) (*reached, error) {
	c := &reached{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, errors.Join(record.ErrCommand, err)
	}
	if !c.Account.Valid() || !c.Heads.valid() {
		return nil, fmt.Errorf("%w: the ends of the streams of account %q", record.ErrCommand, c.Account)
	}
	return c, nil
}

// valid reports whether all lanes are lanes.
func (h heads) valid() bool {
	for _, s := range h {
		if s.Lane >= geo.LaneCount || s.Seq == 0 {
			return false
		}
	}
	return true
}

// EncodeResult implements ranges.Portable: a byte if the range is behind.
func (c *reached) EncodeResult() []byte { return record.EncodeMore(c.behind) }

// DecodeResult implements ranges.Portable.
func (c *reached) DecodeResult(b []byte) error {
	c.behind = len(b) > 0
	return nil
}
