package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Bounds of units.
const (
	// UnitBytesMax bounds the rows of a unit, so that it fits a call.
	UnitBytesMax = 2 << 20
	// unitsBytesMax bounds the units of one answer, but for the first.
	unitsBytesMax = 1 << 20
)

// Unit is a unit of rows (keys.Partition.Unit) as a location has it. A unit larger than UnitBytesMax has no rows
// here, and Large is set.
type Unit struct {
	Key   []byte
	Large bool
	Rows  []UnitRow
}

// UnitRow is a row with its whole key.
type UnitRow struct{ Key, Value []byte }

// Units reads units of an account in a range at a location that receives it, in the order in which they are named.
// It also reads the cursors, which belong to the same state. It returns the first of them, as many as fit an
// answer.
func Units(ctx context.Context, at Peer, r geo.RangeID, a geo.Account, epoch geo.Epoch, units [][]byte) ([]Unit, [geo.LaneCount]LaneHead, error) {
	e := &end{peer: at, rng: r, wait: clock.Wait}
	answer, err := e.ask(ctx, &Question{Op: OpRead, Account: a, Epoch: epoch, Prefixes: units})
	if err != nil {
		return nil, e.heads, err
	}
	if err := e.take(answer.Heads); err != nil {
		return nil, e.heads, err
	}
	out, err := parseUnits(answer.Result, units)
	return out, e.heads, err
}

// read answers OpRead.
func (s *Sessions) read(ctx context.Context, r geo.RangeID, q *Question) (a *Answer, err error) {
	for _, key := range q.Prefixes {
		if p, row, err := keys.ParsePartition(key); err != nil || p.Account != q.Account || !bytes.Equal(p.Unit(row), key) {
			return nil, fmt.Errorf("%w: %x is no unit of account %s", errQuestion, key, q.Account)
		}
	}
	snap, _, err := s.o.Stamp.Snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	a = &Answer{}
	if a.Heads, err = headsIn(snap, r, q); err != nil {
		return nil, err
	}
	for _, key := range q.Prefixes {
		u, err := readUnit(snap, key)
		if err != nil {
			return nil, err
		}
		encoded := appendUnit(nil, u)
		if len(a.Result) > 0 && len(a.Result)+len(encoded) > unitsBytesMax {
			break
		}
		a.Result = append(a.Result, encoded...)
	}
	return a, nil
}

func readUnit(snap kv.Reader, key []byte) (u Unit, err error) {
	it, err := snap.Scan(key, keys.PrefixEnd(key))
	if err != nil {
		return u, err
	}
	for size := 0; !u.Large && it.Next(); {
		size += len(it.Key()) + len(it.Value()) + 2*binary.MaxVarintLen32
		if u.Large = size > UnitBytesMax; u.Large {
			u.Rows = nil
			break
		}
		u.Rows = append(u.Rows, UnitRow{bytes.Clone(it.Key()), bytes.Clone(it.Value())})
	}
	return u, it.Close()
}

// appendUnit appends a unit without its key: a byte that is 1 if it is large, how many rows follow, and of each the
// key and the value with their lengths.
func appendUnit(dst []byte, u Unit) []byte {
	large := byte(0)
	if u.Large {
		large = 1
	}
	dst = binary.AppendUvarint(append(dst, large), uint64(len(u.Rows)))
	for _, r := range u.Rows {
		dst = append(binary.AppendUvarint(dst, uint64(len(r.Key))), r.Key...)
		dst = append(binary.AppendUvarint(dst, uint64(len(r.Value))), r.Value...)
	}
	return dst
}

// parseUnits decodes the first of the units that were asked for.
func parseUnits(b []byte, asked [][]byte) (out []Unit, err error) {
	for c := (cutter{b: b}); len(c.b) > 0; {
		if len(out) == len(asked) {
			return nil, fmt.Errorf("%w: more units than %d", errMalformed, len(asked))
		}
		u := Unit{Key: asked[len(out)], Large: c.byte() == 1}
		n := c.uvarint()
		for ; n > 0 && !c.failed; n-- {
			u.Rows = append(u.Rows, UnitRow{c.take(c.uvarint()), c.take(c.uvarint())})
		}
		if c.failed {
			return nil, fmt.Errorf("%w: units", errMalformed)
		}
		out = append(out, u)
	}
	if len(out) == 0 && len(asked) > 0 {
		return nil, fmt.Errorf("%w: no unit", errMalformed)
	}
	return out, nil
}
