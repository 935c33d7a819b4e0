package secondary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// kindApply is the kind of apply.
const kindApply = "secondary.apply"

// errApply is returned for bytes that are not an encoded batch, or not the outcomes of one.
var errApply = errors.New("secondary: malformed batch of received records")

// Commands are the commands of this package that a node accepts from other nodes. catalog returns
// a replica of the catalog at this node, nil while it has none.
func Commands(catalog func() *ranges.Range) ranges.Commands {
	return ranges.Commands{kindStop: parseStop, kindRebase: parseRebase, kindApply: func(body []byte) (ranges.Portable, error) {
		cat := catalog()
		if cat == nil {
			return nil, errNoLeader
		}
		b, err := parseBatch(body)
		if err != nil {
			return nil, err
		}
		return &apply{b: b, catalog: replicaOf(cat)}, nil
	}}
}

// noCatalog stands for the catalog at a node without a usable replica of it. The node that
// evaluates uses another.
type noCatalog struct{}

// Get implements kv.Getter.
func (noCatalog) Get([]byte) ([]byte, bool, error) { return nil, false, errNoLeader }

// Gate implements containers.
func (noCatalog) Gate(geo.Account) (change.Gate, error) { return change.Gate{}, errNoLeader }

// Kind implements ranges.Portable.
func (c *apply) Kind() string { return kindApply }

// Encode implements ranges.Portable: the length of the origin and the origin, the range,
// how many records follow, each with its length, and the closed record, if any. Lengths
// and numbers are varints.
func (c *apply) Encode() []byte {
	size := 64
	for _, r := range c.b.Records {
		size += len(r.Bytes) + binary.MaxVarintLen32
	}
	b := appendBytes(make([]byte, 0, size), []byte(c.b.Source.Origin))
	b = binary.AppendUvarint(b, uint64(c.b.Source.Range))
	b = binary.AppendUvarint(b, uint64(len(c.b.Records)))
	for _, r := range c.b.Records {
		b = appendBytes(b, r.Bytes)
	}
	if c.b.Closed != nil {
		b = change.AppendClosed(b, c.b.Closed)
	}
	return b
}

func appendBytes(dst, v []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(v))), v...)
}

// parseBatch is the inverse of Encode.
func parseBatch(b []byte) (*receive.Batch, error) {
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b = nil
			return ^uint64(0)
		}
		b = b[n:]
		return v
	}
	field := func() ([]byte, bool) {
		n := number()
		if n > uint64(len(b)) {
			return nil, false
		}
		v := b[:n:n]
		b = b[n:]
		return v, true
	}
	origin, ok := field()
	id, count := number(), number()
	// A record takes more than one byte, so a number that was made up allocates nothing.
	if !ok || id > 1<<32-1 || count > uint64(len(b)) {
		return nil, errApply
	}
	out := &receive.Batch{Source: geo.SourceRange{Origin: geo.Location(origin), Range: geo.RangeID(id)}}
	for range count {
		v, ok := field()
		if !ok {
			return nil, errApply
		}
		var err error
		// One record that this node cannot decode, as of a later version, must not stop the batch (R11).
		r := &receive.Record{Bytes: v}
		if r.Record, err = change.ParseRecord(v); err != nil {
			r.Record, r.Bad = change.Record{}, change.Undecodable(v)
		}
		out.Records = append(out.Records, r)
	}
	if len(b) > 0 {
		closed, err := change.ParseClosed(b)
		switch {
		case errors.Is(err, change.ErrVersion): // No more than one record must it stop the batch (R11).
			out.ClosedLater = true
		case err != nil:
			return nil, fmt.Errorf("%w: %w", errApply, err)
		default:
			out.Closed = &closed
		}
	}
	return out, nil
}

// Flags of a result.
const (
	resultClosedTaken = 1
	resultClosedStops = 2
	resultClosedLater = 4
)

// EncodeResult implements ranges.Portable: what became of the closed record, and the outcome of each
// record, in a byte each; then, as a varint, how far the closed record is ahead of the clock, and of each record
// that waits the same and a byte for what it waits for.
func (c *apply) EncodeResult() []byte {
	out := make([]byte, 1, 2+len(c.b.Records))
	if c.b.ClosedTaken {
		out[0] |= resultClosedTaken
	}
	if c.b.ClosedStops {
		out[0] |= resultClosedStops
	}
	if c.b.ClosedLater {
		out[0] |= resultClosedLater
	}
	for _, r := range c.b.Records {
		out = append(out, byte(r.Outcome))
	}
	out = binary.AppendUvarint(out, uint64(c.b.ClosedAhead))
	for _, r := range c.b.Records {
		if r.Outcome == receive.Wait {
			out = append(binary.AppendUvarint(out, uint64(r.Ahead)), byte(r.For))
		}
	}
	return out
}

// DecodeResult implements ranges.Portable.
func (c *apply) DecodeResult(b []byte) error {
	n := len(c.b.Records)
	if len(b) < 1+n || b[0] > resultClosedTaken|resultClosedStops|resultClosedLater {
		return errApply
	}
	flags, outcomes, rest := b[0], b[1:1+n], b[1+n:]
	ahead, waits := make([]time.Duration, 1, 1+n), make([]receive.WaitsFor, n)
	for i := -1; i < n; i++ {
		if i >= 0 {
			if o := outcomes[i]; o < byte(receive.Applied) || o > byte(receive.UnknownVersion) {
				return errApply
			}
			ahead = append(ahead, 0)
			if outcomes[i] != byte(receive.Wait) {
				continue
			}
		}
		v, size := binary.Uvarint(rest)
		if size <= 0 || int64(v) < 0 {
			return errApply
		}
		rest, ahead[1+i] = rest[size:], time.Duration(v)
		if i < 0 {
			continue
		}
		if len(rest) == 0 {
			return errApply
		}
		rest, waits[i] = rest[1:], receive.WaitsFor(rest[0])
	}
	if len(rest) > 0 {
		return errApply
	}
	c.b.ClosedTaken, c.b.ClosedStops, c.b.ClosedAhead = flags&resultClosedTaken != 0, flags&resultClosedStops != 0, ahead[0]
	c.b.ClosedLater = flags&resultClosedLater != 0
	for i, r := range c.b.Records {
		r.Outcome, r.Ahead, r.For = receive.Outcome(outcomes[i]), ahead[1+i], waits[i]
	}
	return nil
}
