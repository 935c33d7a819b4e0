package ranges

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
)

// A fork is settled per stream, without an image of the account (R16). Its two ends hold different records under
// the same numbers, or the receiver lost what it had acknowledged; which rows differ, no record says. So the
// stream goes on from a base, and a comparison of its lane finds the rows:
//
//	source    forked ──Settle: the base──> settling ──the lane is equal: EndSettle──> goes on
//	receiver  forked ──offered the base: Rebase──> settling ──answered the end: EndSettle──> goes on
//
//   - The base is a numbered record of the source that sets nothing. Settle numbers as many of them as are
//     needed for a number above all that the receiver has applied, or has seen named. So no record and no closed
//     record of either history is ever taken for one above the base.
//   - The receiver sets its cursor to the base, and nothing else. The source offers it only to the cursor that the
//     operator's command found there, number and hash, and the receiver takes it only while that is still its
//     cursor. What the receiver holds at one cursor is always the same, so that it may take the base also after
//     it lost, in a recovery, that the stream was stopped. One that was recovered to another cursor is offered
//     nothing, nor is one whose base was deleted since: the stream stops again, and the operator asks again.
//   - From then on the stream is like any other: its records are applied in order, and acknowledged. But its
//     copy has rows that no record explains. Until the end both ends keep the stop, with the reason
//     change.StopSettling, so that there is no sync time.
//   - The rows that differ are found by verify, at a record that both ends are at, and repaired by ordinary
//     changes of the source. What a record overwrites or deletes at the receiver meanwhile is kept in the
//     lost-and-found of that location, by the group that applies the record: see KeepFound.
//   - Where the receiver's side is kept (StopTaking), it is the source that takes rows, by changes too, and that keeps
//     what they were. It takes none that a client has written above the base: see Tx.Written. What it does not take
//     is repaired as above.
//   - The settlement ends at the source, once the lane was compared after the base and found equal, by one group:
//     the only point that decides. The receiver asks with each cursor, and the answer is yes only if the cursor
//     fits the source's chain, which then has the base in it. The answer has the source's head too, and the receiver
//     ends the settlement once it has applied that: a receiver that was recovered with loss meanwhile may be below
//     the record at which the copies were equal.
//
// Each step is one group, names the base or the cursor that it is for, and does nothing under another one. So each
// may be repeated, late or lost, and whatever process sees the stops goes on. A recovery with loss of the source
// to before the base leaves a receiver that is ahead of it: a fork again. One of the receiver to
// before the base leaves the cursor from which Settle began, or one that has lost what is deleted since: a loss.

// Bounds of Settle.
const (
	// settleRecordsMax is how many records one group numbers for a base, and settleGapMax how many all of them.
	settleRecordsMax = 10_000
	settleGapMax     = 1 << 20
)

// SettleOutcome is what became of a Settle.
type SettleOutcome byte

// The outcomes.
const (
	// SettleMore: the command has to be repeated: a group numbers so many records.
	SettleMore SettleOutcome = iota + 1
	// SettleBegun: the settlement has begun, now or before.
	SettleBegun
	// SettleNotHere: the account is not shipped from here in the epoch of the stream.
	SettleNotHere
	// SettleNotStopped: the stream is not stopped here.
	SettleNotStopped
	// SettleNot: the stream is stopped for a reason that no settlement ends.
	SettleNot
	// SettleFar: too many numbers are between the source's head and what the receiver has seen.
	SettleFar
	// SettleOther: the settlement has begun for the source's side. It is not known what clients have written since.
	SettleOther
	// SettleLacks: the receiver lacks records that it had acknowledged. Its side would undo them, and cannot be kept.
	SettleLacks
	settleEnd
)

// Settle is the command that begins to settle a fork, at the source.
type Settle struct {
	Stream geo.Stream
	// From is the cursor of the receiver, which has stopped the stream, and Above the greatest number that a closed
	// record named there.
	From  geo.Head
	Above geo.Seq
	// Settles reports that the receiver settles it already.
	Settles bool
	// Take settles it for the receiver's side: see StopTaking. A settlement for the receiver's side may go on for
	// the source's.
	Take bool `json:",omitempty"`

	// Outcome is the result.
	Outcome SettleOutcome `json:"-"`
}

// Evaluate implements Command.
func (c *Settle) Evaluate(tx *Tx) error {
	why, _ := tx.Stopped(c.Stream)
	if c.Outcome = c.refused(tx, why, tx.Head(c.Stream)); c.Outcome != 0 {
		if c.Outcome == SettleBegun && why.Reason != c.reason() {
			tx.Stop(c.Stream, change.Stop{Reason: c.reason(), Here: why.Here, There: why.There})
			return tx.forgetWritten(c.Stream)
		}
		return nil
	}
	above := max(tx.Head(c.Stream).Seq, c.From.Seq, c.Above)
	for range settleRecordsMax {
		if err := tx.blank(c.Stream); err != nil {
			return err
		}
		if base := tx.Head(c.Stream); base.Seq > above {
			tx.Stop(c.Stream, change.Stop{Reason: c.reason(), Here: base, There: c.From})
			c.Outcome = SettleBegun
			return tx.forgetWrittenBefore(c.Stream, base.Seq)
		}
	}
	c.Outcome = SettleMore
	return nil
}

func (c *Settle) reason() change.StopReason {
	if c.Take {
		return change.StopTaking
	}
	return change.StopSettling
}

// refused returns why the settlement does not begin now, zero if it does.
func (c *Settle) refused(tx *Tx, why change.Stop, head geo.Head) SettleOutcome {
	offered := c.From == why.There && tx.r.Machine.Trimmed(c.Stream) < why.Here.Seq
	switch gate := tx.Gate(c.Stream.Account); {
	case gate.Role != change.RolePrimary || !gate.Numbered || gate.Epoch != c.Stream.Epoch:
		return SettleNotHere
	case why.Reason == change.NotStopped:
		return SettleNotStopped
	case why.Reason.Settles() && (offered || c.Settles):
		if c.Take && why.Reason != change.StopTaking {
			return SettleOther
		}
		return SettleBegun
	case !why.Reason.Settles() && !why.Reason.MaySettle():
		return SettleNot
	case c.Take && (why.Reason == change.StopLost || c.From.Seq < tx.r.Machine.Trimmed(c.Stream)):
		return SettleLacks // It may be stopped there as forked: the first reason stays.
	case c.Take && why.Reason.Settles():
		// The command is late, or the source has not heard yet of another stop. From a new base on it would not be known what
		// clients have written since the first one, nor what was sent again: the receiver may have a part of it.
		return SettleNotStopped
	case max(c.From.Seq, c.Above) > head.Seq+settleGapMax:
		return SettleFar
	}
	return 0
}

// blank stages a record of a stream that sets nothing.
func (tx *Tx) blank(s geo.Stream) error {
	p := keys.Partition{Service: Service(tx.Range()), Account: s.Account}
	return tx.stage(change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Service: p.Service, Account: s.Account, Lane: s.Lane}, true)
}

// Rebase stages that the cursor of a received stream is set to a record that need not follow it.
func (tx *Tx) Rebase(encoded []byte, rec *change.Record) {
	s := rec.Stream()
	next := tx.Cursor(s)
	tx.b.Base(encoded)
	tx.r.last = max(tx.r.last, rec.CommitTime)
	save(tx, tx.r.cursors, s)
	tx.r.cursors[s] = nextCursor(tx, next, rec, encoded)
}

// KeepFound stages that the value of a row, which the caller is about to overwrite or delete, is kept in the
// lost-and-found of this location, as is the payload that it names and this node has. It belongs to the
// settlement with a base. A row is kept once for each settlement: as it was when it was first overwritten.
//
// What is kept are rows of a reserved name in the place of an account: replicated, synced and copied like all
// others, never shipped, compared or wiped with an account, and not bounded. DropFound alone deletes them.
func (tx *Tx) KeepFound(s geo.Stream, base geo.Seq, key, value []byte, chunks []extent.Ref) error {
	if kept, err := tx.Kept(s, base, key); kept || err != nil {
		return err
	}
	p := keys.Found(Service(tx.Range()), s, base)
	prefix := p.Append(nil)
	f := change.Found{At: tx.Timestamp(0), Value: value}
	for _, ref := range chunks {
		if tx.HasChunk(ref) {
			f.Chunks = append(f.Chunks, ref)
		} else {
			f.Missing++
		}
	}
	op := change.Op{Row: key, Value: change.AppendFound(nil, f)}
	return tx.Change(p, change.Record{CommitTime: f.At, Partition: prefix, Ops: []change.Op{op}, Chunks: f.Chunks})
}

// Kept reports whether a row is in the lost-and-found of this location already, for the settlement with a base.
func (tx *Tx) Kept(s geo.Stream, base geo.Seq, key []byte) (bool, error) {
	_, kept, err := tx.Get(append(keys.Found(Service(tx.Range()), s, base).Append(nil), key...))
	return kept, err
}

// EndSettle is the command that ends the settlement of a stream, at the source or at the receiver.
type EndSettle struct {
	Stream geo.Stream
	// Base is the one that the settlement began from. Under another one nothing happens.
	Base geo.Head
	// At is the number that the receiver must have applied; zero at the source.
	At geo.Seq
	// Ended reports that the settlement has ended by this command.
	Ended bool `json:"-"`
}

// Evaluate implements Command.
func (c *EndSettle) Evaluate(tx *Tx) error {
	why, _ := tx.Stopped(c.Stream)
	if c.Ended = why.Reason.Settles() && why.Here == c.Base && tx.Cursor(c.Stream).Applied.Seq >= c.At; !c.Ended {
		return nil
	}
	tx.Stop(c.Stream, change.Stop{})
	if why.Reason == change.StopTaking {
		return tx.forgetWritten(c.Stream)
	}
	return nil
}

// errSettle: bytes that are no encoded command of a settlement, or no result of one.
var errSettle = errors.New("ranges: malformed command to settle a fork")

// DropFound is the command that deletes rows of the lost-and-found, or lost changes (R22), at the location that keeps them.
type DropFound struct {
	Keys [][]byte
	// Dropped is how many of them were there.
	Dropped int `json:"-"`
}

// Evaluate implements Command.
func (c *DropFound) Evaluate(tx *Tx) error {
	c.Dropped = 0
	for _, key := range c.Keys {
		p, row, err := keys.ParsePartition(key)
		kept := p.Account == keys.LostAndFound || p.Account == keys.LostChanges
		if err != nil || !kept || p.Service != Service(tx.Range()) {
			return fmt.Errorf("%w: %x is no row of the lost-and-found, and no lost change", errSettle, key)
		}
		if _, kept, err := tx.Get(key); err != nil {
			return err
		} else if !kept {
			continue
		}
		c.Dropped++
		rec := change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Delete: true, Row: row}}}
		if err := tx.Change(p, rec); err != nil {
			return err
		}
	}
	return nil
}

// Deletes implements Deletion.
func (c *DropFound) Deletes() {}

// Kind implements Portable.
func (c *DropFound) Kind() string { return kindDropFound }

// Encode implements Portable.
func (c *DropFound) Encode() []byte { return encodeJSON(c) }

// EncodeResult implements Portable.
func (c *DropFound) EncodeResult() []byte { return binary.AppendUvarint(nil, uint64(c.Dropped)) }

// DecodeResult implements Portable.
func (c *DropFound) DecodeResult(b []byte) error {
	n, size := binary.Uvarint(b)
	if size != len(b) || n > uint64(len(c.Keys)) {
		return fmt.Errorf("%w: result %x", errSettle, b)
	}
	c.Dropped = int(n)
	return nil
}

func parseDropFound(b []byte) (Portable, error) {
	c := &DropFound{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("%w: %q", errSettle, b)
	}
	return c, nil
}

// The kinds of the commands.
const (
	kindDropFound = "ranges.dropFound"
	kindSettle    = "ranges.settle"
	kindEndSettle = "ranges.endSettle"
)

// Kind implements Portable.
func (c *Settle) Kind() string { return kindSettle }

// Encode implements Portable.
func (c *Settle) Encode() []byte { return encodeJSON(c) }

// EncodeResult implements Portable.
func (c *Settle) EncodeResult() []byte { return []byte{byte(c.Outcome)} }

// DecodeResult implements Portable.
func (c *Settle) DecodeResult(b []byte) error {
	if len(b) != 1 || b[0] == 0 || SettleOutcome(b[0]) >= settleEnd {
		return fmt.Errorf("%w: result %x", errSettle, b)
	}
	c.Outcome = SettleOutcome(b[0])
	return nil
}

// Kind implements Portable.
func (c *EndSettle) Kind() string { return kindEndSettle }

// Encode implements Portable.
func (c *EndSettle) Encode() []byte { return encodeJSON(c) }

// EncodeResult implements Portable.
func (c *EndSettle) EncodeResult() []byte {
	if c.Ended {
		return []byte{1}
	}
	return []byte{0}
}

// DecodeResult implements Portable.
func (c *EndSettle) DecodeResult(b []byte) error {
	if len(b) != 1 || b[0] > 1 {
		return fmt.Errorf("%w: result %x", errSettle, b)
	}
	c.Ended = b[0] == 1
	return nil
}

// encodeJSON encodes a command that has no value which JSON lacks.
func encodeJSON(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

func parseSettle(b []byte) (Portable, error) {
	c := &Settle{}
	if err := json.Unmarshal(b, c); err != nil || c.Stream.Lane >= geo.LaneCount {
		return nil, fmt.Errorf("%w: %q", errSettle, b)
	}
	return c, nil
}

func parseEndSettle(b []byte) (Portable, error) {
	c := &EndSettle{}
	if err := json.Unmarshal(b, c); err != nil || c.Stream.Lane >= geo.LaneCount {
		return nil, fmt.Errorf("%w: %q", errSettle, b)
	}
	return c, nil
}
