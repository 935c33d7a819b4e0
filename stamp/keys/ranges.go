package keys

import (
	"encoding/binary"

	"antipode/geo"
)

// Kinds of keys that belong to a range. Durable: never renumber.
const (
	kindApplied    byte = 0x01 // applied index, term, last group that took effect
	kindGate       byte = 0x02 // account
	kindHead       byte = 0x03 // stream: last record numbered here
	kindOutbox     byte = 0x04 // stream, seq: record not yet acknowledged
	kindTrimmed    byte = 0x05 // stream: last record deleted from the outbox
	kindClosed     byte = 0x06 // own closed time
	kindCursor     byte = 0x07 // stream: last number applied here
	kindReceived   byte = 0x08 // origin, source range: closed time received, and its heads
	kindGeneration byte = 0x09 // container of a service: closed generation
	kindMembers    byte = 0x0a // replicas of the range, once that changed
	kindStop       byte = 0x0b // stream: why it may not go on
	kindImage      byte = 0x0c // account: how far the image of its rows is
	kindCompared   byte = 0x0d // incarnation under which the gates were compared
	kindAnswers    byte = 0x0e // which changes in the outbox were surely answered
	kindLevels     byte = 0x0f // feature levels, in the catalog
	kindRetired    byte = 0x10 // ranges that were recovered had it for a while: read past

	// kindLast is the greatest of them. A new kind is above it.
	kindLast = kindRetired
)

func rangeKey(r geo.RangeID, kind byte) []byte { return appendRangeKey(make([]byte, 0, 64), r, kind) }

func appendRangeKey(b []byte, r geo.RangeID, kind byte) []byte {
	b = append(b, spaceRange)
	b = binary.BigEndian.AppendUint32(b, uint32(r))
	return append(b, kind)
}

func appendStream(b []byte, s geo.Stream) []byte {
	b = AppendString(b, string(s.Account))
	b = AppendUint64(b, uint64(s.Epoch.Number))
	b = AppendString(b, string(s.Epoch.Location))
	b = binary.BigEndian.AppendUint32(b, uint32(s.Range))
	return append(b, byte(s.Lane))
}

func cutStream(b []byte) (s geo.Stream, rest []byte, err error) {
	account, b, err := CutString(b)
	if err != nil {
		return s, nil, err
	}
	s.Account = geo.Account(account)
	epoch, b, err := CutUint64(b)
	if err != nil {
		return s, nil, err
	}
	s.Epoch.Number = geo.EpochNumber(epoch)
	location, b, err := CutString(b)
	if err != nil {
		return s, nil, err
	}
	s.Epoch.Location = geo.Location(location)
	if len(b) < 5 {
		return s, nil, ErrMalformed
	}
	s.Range = geo.RangeID(binary.BigEndian.Uint32(b))
	s.Lane = geo.Lane(b[4])
	if s.Lane >= geo.LaneCount {
		return s, nil, ErrMalformed
	}
	return s, b[5:], nil
}

// Applied is where a range keeps its applied index.
func Applied(r geo.RangeID) []byte { return rangeKey(r, kindApplied) }

// Closed is where a range keeps the greatest closed time it committed.
func Closed(r geo.RangeID) []byte { return rangeKey(r, kindClosed) }

// Members is where a range keeps which replicas it has.
func Members(r geo.RangeID) []byte { return rangeKey(r, kindMembers) }

// Gate is where a range keeps the gate of an account (R7).
func Gate(r geo.RangeID, a geo.Account) []byte {
	return AppendString(rangeKey(r, kindGate), string(a))
}

// Image is where a source range keeps how far the image of an account's rows is (R17).
func Image(r geo.RangeID, a geo.Account) []byte {
	return AppendString(rangeKey(r, kindImage), string(a))
}

// Compared is where a range that was recovered with loss keeps under which incarnation its gates were compared with
// the catalog (R7).
func Compared(r geo.RangeID) []byte { return rangeKey(r, kindCompared) }

// Answers is where a source range keeps which of the changes in its outbox were surely answered (R22).
func Answers(r geo.RangeID) []byte { return rangeKey(r, kindAnswers) }

// Levels is the key of the feature levels.
func Levels(r geo.RangeID) []byte { return rangeKey(r, kindLevels) }

// IsRange reports whether a key belongs to a range, whatever its kind, and not to what clients stored.
func IsRange(key []byte) bool { return len(key) > 0 && key[0] == spaceRange }

// Unknown are the keys of a range that no function of this version makes: those of kinds that a later one added.
func Unknown(r geo.RangeID) (lower, upper []byte) {
	return rangeKey(r, kindLast+1), PrefixEnd(RangeLocal(r))
}

// Head is where a source range keeps the last record of a stream.
func Head(r geo.RangeID, s geo.Stream) []byte { return appendStream(rangeKey(r, kindHead), s) }

// Trimmed is where a source range keeps the last record it deleted from the outbox.
func Trimmed(r geo.RangeID, s geo.Stream) []byte { return appendStream(rangeKey(r, kindTrimmed), s) }

// Outbox is where a source range keeps a record the other location has not acknowledged.
func Outbox(r geo.RangeID, s geo.Stream, n geo.Seq) []byte {
	return AppendOutbox(make([]byte, 0, 96), r, s, n)
}

// AppendOutbox appends what Outbox returns.
func AppendOutbox(b []byte, r geo.RangeID, s geo.Stream, n geo.Seq) []byte {
	return AppendUint64(appendStream(appendRangeKey(b, r, kindOutbox), s), uint64(n))
}

// Cursor is where a receiving range keeps how far it applied a stream.
func Cursor(r geo.RangeID, s geo.Stream) []byte { return appendStream(rangeKey(r, kindCursor), s) }

// Stop is where a range keeps why a stream that it numbers or receives may not go on (R16).
func Stop(r geo.RangeID, s geo.Stream) []byte { return appendStream(rangeKey(r, kindStop), s) }

// Received is where a receiving range keeps the closed record it committed last
// for a source range of another location.
func Received(r geo.RangeID, origin geo.Location, source geo.RangeID) []byte {
	b := AppendString(rangeKey(r, kindReceived), string(origin))
	return binary.BigEndian.AppendUint32(b, uint32(source))
}

// ClosedGeneration is where a range keeps that a generation of a container takes
// no more changes (R8).
func ClosedGeneration(r geo.RangeID, s geo.Service, a geo.Account, container string, g Generation) []byte {
	return appendGeneration(AppendString(ClosedGenerations(r, s, a), container), g)
}

// ClosedGenerations is the prefix of ClosedGeneration of an account.
func ClosedGenerations(r geo.RangeID, s geo.Service, a geo.Account) []byte {
	return AppendString(append(rangeKey(r, kindGeneration), byte(s)), string(a))
}

// Spans for scanning at open.

// RangeLocal is the prefix of everything that belongs to a range but clients' data.
func RangeLocal(r geo.RangeID) []byte {
	k := rangeKey(r, 0)
	return k[:len(k)-1]
}

// Gates is the prefix of a range's gates.
func Gates(r geo.RangeID) []byte { return rangeKey(r, kindGate) }

// Images is the prefix of what a source range keeps of images.
func Images(r geo.RangeID) []byte { return rangeKey(r, kindImage) }

// Heads is the prefix of the heads of a range's streams.
func Heads(r geo.RangeID) []byte { return rangeKey(r, kindHead) }

// Trims is the prefix of the outbox low-water marks of a range's streams.
func Trims(r geo.RangeID) []byte { return rangeKey(r, kindTrimmed) }

// Cursors is the prefix of a receiving range's cursors.
func Cursors(r geo.RangeID) []byte { return rangeKey(r, kindCursor) }

// Stops is the prefix of a range's stops.
func Stops(r geo.RangeID) []byte { return rangeKey(r, kindStop) }

// ReceivedAll is the prefix of a receiving range's closed records.
func ReceivedAll(r geo.RangeID) []byte { return rangeKey(r, kindReceived) }

// OutboxAll is the prefix of a range's whole outbox.
func OutboxAll(r geo.RangeID) []byte { return rangeKey(r, kindOutbox) }

// rangePrefixLen is the length of the space, range and kind bytes.
const rangePrefixLen = 6

// ParseStreamKey decodes the stream of a head, trimmed, cursor, stop or outbox key and
// returns what follows it.
func ParseStreamKey(key []byte) (geo.Stream, []byte, error) {
	if len(key) < rangePrefixLen || key[0] != spaceRange {
		return geo.Stream{}, nil, ErrMalformed
	}
	switch key[rangePrefixLen-1] {
	case kindHead, kindOutbox, kindTrimmed, kindCursor, kindStop:
	default:
		return geo.Stream{}, nil, ErrMalformed
	}
	return cutStream(key[rangePrefixLen:])
}

// ParseGateKey decodes the account of a gate key.
func ParseGateKey(key []byte) (geo.Account, error) {
	if len(key) < rangePrefixLen || key[0] != spaceRange || key[rangePrefixLen-1] != kindGate {
		return "", ErrMalformed
	}
	a, rest, err := CutString(key[rangePrefixLen:])
	if err == nil && len(rest) != 0 {
		return "", ErrMalformed
	}
	return geo.Account(a), err
}
