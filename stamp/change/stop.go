package change

import (
	"encoding/binary"
	"fmt"

	"antipode/geo"
)

// StopReason is why a stream may not go on. Durable: never renumber.
type StopReason byte

// The reasons.
const (
	// NotStopped is the zero value. As a part of a group it ends a stop.
	NotStopped StopReason = 0
	// StopForked: both locations hold another record under a number, or the receiver is ahead (R16).
	StopForked StopReason = 1
	// StopLost: the receiver lost records that it had acknowledged and the source has deleted (R16).
	StopLost StopReason = 2
	// StopPoison: the next record cannot be decoded or evaluated, also after the source sent it again
	// (R11).
	StopPoison StopReason = 3
	// StopVersion: the next record is of a later format version than the receiver knows (R11).
	StopVersion StopReason = 4
	// StopBudget: the source deleted records of the stream that were not acknowledged. It did so to keep
	// the budget of its outbox (R18), or because the account has left the stream's epoch and the other
	// location may not know. The stream may go on being numbered, and none of it is kept or sent.
	StopBudget StopReason = 5
	// StopSettling: an operator settles a fork, and the rows that differ become those of the source (R16). The
	// stream goes on, and has no sync time until both copies are found equal. At the source Here is the base from
	// which it goes on, and There the cursor that the receiver sets to it.
	StopSettling StopReason = 6
	// StopTaking is StopSettling where the rows that differ become those of the receiver. The source alone keeps it: at
	// the receiver, and on the way there, it is StopSettling.
	StopTaking StopReason = 7
	stopEnd    StopReason = 8
)

// Known reports whether this version has a name for the reason. An entry with another one no replica can apply.
func (r StopReason) Known() bool { return r < stopEnd }

// Stands reports whether nothing of the stream is applied until an operator decides.
func (r StopReason) Stands() bool { return r != NotStopped && !r.Settles() }

// Settles reports whether the stream goes on, since its fork is being settled.
func (r StopReason) Settles() bool { return r == StopSettling || r == StopTaking }

// MaySettle reports whether an operator may settle a stream that is stopped for this reason.
func (r StopReason) MaySettle() bool { return r == StopForked || r == StopLost }

// String is the word for operators.
func (r StopReason) String() string {
	if r.Known() {
		return [...]string{"", "forked", "lost", "poison", "version", "behind-outbox", "settling", "settling"}[r]
	}
	return fmt.Sprintf("reason-%d", byte(r))
}

// Stop is the durable record that a stream may not go on, kept by its source range and by the range
// that receives it. The records of a stopped stream are not applied, and deleted from the outbox for
// StopBudget alone.
type Stop struct {
	Reason StopReason
	// Here is the last record of the stream at the location that keeps this; There is the one at the
	// other location, as far as it is known.
	Here, There geo.Head
	// At is the commit time of the stop.
	At geo.Timestamp
}

// AppendStop appends the encoded stop.
func AppendStop(dst []byte, s Stop) []byte {
	dst = append(dst, formatVersion, byte(s.Reason))
	for _, v := range [...]uint64{uint64(s.Here.Seq), uint64(s.Here.Hash), uint64(s.There.Seq), uint64(s.There.Hash), uint64(s.At)} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}

func readStop(rd *reader) Stop {
	rd.version()
	s := Stop{Reason: StopReason(rd.byte())}
	for _, h := range [...]*geo.Head{&s.Here, &s.There} {
		h.Seq, h.Hash = geo.Seq(rd.uint64()), geo.Hash(rd.uint64())
	}
	s.At = geo.Timestamp(rd.uint64())
	return s
}

// ParseStop decodes a stop that fills b. One for a reason of a later version is ErrVersion.
func ParseStop(b []byte) (Stop, error) {
	rd := reader{b: b}
	s := readStop(&rd)
	err := s.check(&rd)
	return s, err
}

// check returns why a stop that was read from rd is none.
func (s *Stop) check(rd *reader) (err error) {
	if err = rd.end(); err == nil && !s.Reason.Known() {
		err = fmt.Errorf("%w: a stop for reason %d", ErrVersion, byte(s.Reason))
	}
	if err != nil {
		*s = Stop{}
	}
	return err
}

// AppendStopPart appends the body of a PartStop: a stream and its stop.
func AppendStopPart(dst []byte, st geo.Stream, s Stop) []byte {
	return AppendStop(appendStream(dst, st), s)
}

// ParseStopPart decodes a PartStop. Errors as of ParseStop.
func ParseStopPart(b []byte) (geo.Stream, Stop, error) {
	rd := reader{b: b}
	st := readStream(&rd)
	s := readStop(&rd)
	rd.failed = rd.failed || st.Lane >= geo.LaneCount
	if err := s.check(&rd); err != nil {
		return geo.Stream{}, Stop{}, err
	}
	return st, s, nil
}
