package geo

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// LaneCount is the number of lanes of a range. It is fixed when a stamp is made:
// changing it would break the order within partitions.
const LaneCount = 32

// Lane is a hash of the partition modulo LaneCount. All changes of one partition
// travel on one lane.
type Lane uint8

// Seq numbers the changes of one stream densely from 1.
type Seq uint64

// Hash chains the records of a stream: each record carries the hash of the one
// before it; the first carries zero.
type Hash uint64

// Incarnation counts the recoveries with loss of a source range: zero before the first, and greater
// after each. Numbers of its streams go on from those that survived, so a number alone does not say
// which record it names: a number that was given before a loss may be given again after it (R16).
type Incarnation uint64

// EpochNumber orders the epochs of an account: every move raises it. Zero is none.
type EpochNumber uint64

// Epoch is one period of a primary location: a number and the location that assigned it.
// The higher one wins; equal numbers differ in location (R19).
type Epoch struct {
	Number   EpochNumber
	Location Location
}

// IsZero reports whether e is the zero value, which stands for no epoch.
func (e Epoch) IsZero() bool { return e.Number == 0 }

// Compare returns -1, 0 or +1.
func (e Epoch) Compare(o Epoch) int {
	switch {
	case e.Number < o.Number:
		return -1
	case e.Number > o.Number:
		return 1
	}
	return strings.Compare(string(e.Location), string(o.Location))
}

func (e Epoch) String() string { return fmt.Sprintf("%d@%s", e.Number, e.Location) }

// ParseEpoch is the inverse of Epoch.String for an epoch that is not zero and has a location.
func ParseEpoch(s string) (e Epoch, ok bool) {
	number, location, found := strings.Cut(s, "@")
	n, err := strconv.ParseUint(number, 10, 64)
	e = Epoch{Number: EpochNumber(n), Location: Location(location)}
	return e, found && err == nil && e.String() == s && !e.IsZero() && location != ""
}

// Timestamp is a commit time: 100 ns ticks since the Unix epoch, UTC. Within a
// range it strictly increases; its lowest bit differs between the two locations of a
// pair (R6), so no two commits of a pair ever share one.
type Timestamp uint64

// ClockOffMax bounds how far two clocks of the system may be apart (R6): a leader whose wall clock
// is further from those of its quorum does not evaluate, and a time further ahead of the
// receiver's clock is neither taken nor served.
const ClockOffMax = time.Second

// AheadOf reports whether t is further ahead of what a clock shows than the clocks of two nodes may differ: by more than
// ClockOffMax (R6). Then the clock that gave t was wrong, or this one is.
func (t Timestamp) AheadOf(now time.Time) bool { return t.Time().Sub(now) > ClockOffMax }

// TicksPerSecond is the resolution of a Timestamp.
const TicksPerSecond = 10_000_000

// secondsYear1 is the number of seconds from 0001-01-01 to 1970-01-01.
const secondsYear1 = 62135596800

// TimestampOf converts a wall-clock reading, cutting to 100 ns. A time before
// 1970 gives zero.
func TimestampOf(t time.Time) Timestamp {
	sec := t.Unix() // Not UnixNano, which wraps before 1678 and after 2262.
	if sec < 0 {
		return 0
	}
	return Timestamp(sec)*TicksPerSecond + Timestamp(t.Nanosecond()/100)
}

// Time returns the instant in UTC.
func (t Timestamp) Time() time.Time {
	return time.Unix(int64(t/TicksPerSecond), int64(t%TicksPerSecond)*100).UTC()
}

// Ticks returns 100 ns ticks since 0001-01-01, the form blob ETags are made of.
func (t Timestamp) Ticks() uint64 { return uint64(t) + secondsYear1*TicksPerSecond }

func (t Timestamp) String() string { return t.Time().Format("2006-01-02T15:04:05.0000000Z") }

// Stream names the ordered changes of one (account, epoch, range, lane). The
// range is the source's.
type Stream struct {
	Account Account
	Epoch   Epoch
	Range   RangeID
	Lane    Lane
}

// Compare orders streams by account, epoch, range and lane.
func (s Stream) Compare(o Stream) int {
	return cmp.Or(cmp.Compare(s.Account, o.Account), s.Epoch.Compare(o.Epoch), cmp.Compare(s.Range, o.Range), cmp.Compare(s.Lane, o.Lane))
}

// Source names the range that numbers the records of the stream.
func (s Stream) Source() SourceRange { return SourceRange{s.Epoch.Location, s.Range} }

func (s Stream) String() string {
	return fmt.Sprintf("%s/%s/r%d/l%d", s.Account, s.Epoch, s.Range, s.Lane)
}

// Head is the last record of a stream as somebody knows it.
type Head struct {
	Seq  Seq
	Hash Hash
}

// Precedes reports whether the record that has this number, and carries prev as the hash of
// the record before it, follows the head (R11).
func (h Head) Precedes(n Seq, prev Hash) bool { return n == h.Seq+1 && prev == h.Hash }

// Span is an interval of encoded keys, Start included and End not. An empty End is the end of all
// keys.
type Span struct{ Start, End string }

// Within returns the part of the span that is in o, too. If there is none, its end is not above its start.
func (s Span) Within(o Span) Span {
	s.Start = max(s.Start, o.Start)
	if s.End == "" || o.End != "" && o.End < s.End {
		s.End = o.End
	}
	return s
}

// DescriptorVersion counts the changes of a range's span, from 1. Zero is none.
type DescriptorVersion uint64

// EntryID names one entry of a range's Raft log. Entries of two terms may have had the same
// index, of which only one was committed.
type EntryID struct{ Term, Index uint64 }

// SourceRange names a range of the other location, from which streams come to a range here.
type SourceRange struct {
	Origin Location
	Range  RangeID
}
