package keys

import (
	"encoding/binary"

	"antipode/geo"
)

// Kind names what a key that belongs to a range holds.
type Kind string

// The kinds of keys of a range.
const (
	KindApplied    Kind = "applied"
	KindGate       Kind = "gate"
	KindHead       Kind = "head"
	KindOutbox     Kind = "outbox"
	KindTrimmed    Kind = "trimmed"
	KindClosed     Kind = "closed"
	KindCursor     Kind = "cursor"
	KindReceived   Kind = "received"
	KindGeneration Kind = "generation"
	KindMembers    Kind = "members"
	KindStop       Kind = "stop"
	KindImage      Kind = "image"
	KindCompared   Kind = "compared"
	KindAnswers    Kind = "answers"
	KindLevels     Kind = "levels"
	KindRetired    Kind = "retired"
)

// RangeKey is a decoded key of a range: Range and Kind, and of the rest what the kind has.
type RangeKey struct {
	Range geo.RangeID
	Kind  Kind
	// Account of a gate or an image.
	Account geo.Account
	// Stream of a head, a trimmed number, a cursor, a stop or a record of the outbox, and Seq of
	// the latter.
	Stream geo.Stream
	Seq    geo.Seq
	// Origin and Source of a received closed record.
	Origin geo.Location
	Source geo.RangeID
	// Partition of a closed generation: all but its Object.
	Partition Partition
}

// ParseRangeKey decodes any key that belongs to a range. ErrMalformed for clients' data
// and for what no function of this package makes.
func ParseRangeKey(key []byte) (k RangeKey, err error) {
	if len(key) < rangePrefixLen || key[0] != spaceRange {
		return k, ErrMalformed
	}
	k.Range = geo.RangeID(binary.BigEndian.Uint32(key[1:]))
	rest := key[rangePrefixLen:]
	switch key[rangePrefixLen-1] {
	case kindApplied:
		k.Kind = KindApplied
	case kindClosed:
		k.Kind = KindClosed
	case kindMembers:
		k.Kind = KindMembers
	case kindCompared:
		k.Kind = KindCompared
	case kindAnswers:
		k.Kind = KindAnswers
	case kindLevels:
		k.Kind = KindLevels
	case kindRetired:
		k.Kind = KindRetired
	case kindGate:
		k.Kind = KindGate
		rest, err = k.cutAccount(rest)
	case kindImage:
		k.Kind = KindImage
		rest, err = k.cutAccount(rest)
	case kindHead:
		k.Kind = KindHead
		k.Stream, rest, err = cutStream(rest)
	case kindTrimmed:
		k.Kind = KindTrimmed
		k.Stream, rest, err = cutStream(rest)
	case kindCursor:
		k.Kind = KindCursor
		k.Stream, rest, err = cutStream(rest)
	case kindStop:
		k.Kind = KindStop
		k.Stream, rest, err = cutStream(rest)
	case kindOutbox:
		k.Kind = KindOutbox
		if k.Stream, rest, err = cutStream(rest); err == nil {
			var n uint64
			n, rest, err = CutUint64(rest)
			k.Seq = geo.Seq(n)
		}
	case kindReceived:
		k.Kind = KindReceived
		rest, err = k.cutSource(rest)
	case kindGeneration:
		k.Kind = KindGeneration
		rest, err = k.cutClosedGeneration(rest)
	default:
		return k, ErrMalformed
	}
	if err == nil && len(rest) > 0 {
		err = ErrMalformed
	}
	return k, err
}

func (k *RangeKey) cutAccount(b []byte) (rest []byte, err error) {
	a, rest, err := CutString(b)
	k.Account = geo.Account(a)
	return rest, err
}

func (k *RangeKey) cutSource(b []byte) (rest []byte, err error) {
	origin, b, err := CutString(b)
	if err != nil || len(b) < 4 {
		return nil, ErrMalformed
	}
	k.Origin, k.Source = geo.Location(origin), geo.RangeID(binary.BigEndian.Uint32(b))
	return b[4:], nil
}

func (k *RangeKey) cutClosedGeneration(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, ErrMalformed
	}
	k.Partition.Service = geo.Service(b[0])
	account, b, err := CutString(b[1:])
	if err != nil {
		return nil, err
	}
	k.Partition.Account = geo.Account(account)
	if k.Partition.Container, b, err = CutString(b); err != nil {
		return nil, err
	}
	k.Partition.Generation, rest, err = cutGeneration(b)
	return rest, err
}
