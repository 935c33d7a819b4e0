package lease

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"antipode/geo"
)

// ID is the GUID of a lease, as its hexadecimal digits have it.
type ID [16]byte

// ParseID parses a GUID in a usual form: 32 hexadecimal digits, or those with hyphens as 8-4-4-4-12, which may stand in braces
// or brackets (protocol/blob.md 17.1). Case does not count.
func ParseID(text string) (id ID, ok bool) {
	for _, pair := range [...]string{"{}", "()", "[]"} {
		if inner, opened := strings.CutPrefix(text, pair[:1]); opened {
			inner, closed := strings.CutSuffix(inner, pair[1:])
			return parseGrouped(inner, closed)
		}
	}
	if len(text) == hex.EncodedLen(len(id)) {
		_, err := hex.Decode(id[:], []byte(text))
		return id, err == nil
	}
	return parseGrouped(text, true)
}

func parseGrouped(text string, ok bool) (id ID, _ bool) {
	if !ok || len(text) != 36 {
		return id, false
	}
	for _, at := range [...]int{8, 13, 18, 23} {
		if text[at] != '-' {
			return id, false
		}
	}
	_, err := hex.Decode(id[:], []byte(text[:8]+text[9:13]+text[14:18]+text[19:23]+text[24:]))
	return id, err == nil
}

// String is the ID in lower case with hyphens.
func (id ID) String() string {
	b := make([]byte, 0, 36)
	for i, part := range [...][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return string(b)
}

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, ok := ParseID(string(text))
	if !ok {
		return errors.New("lease: an id that is no GUID")
	}
	*id = parsed
	return nil
}

// State of a lease at a time.
type State byte

// The states.
const (
	Available State = iota
	Leased
	Expired
	Breaking
	Broken
)

// String is the state as answers have it.
func (s State) String() string {
	return [...]string{"available", "leased", "expired", "breaking", "broken"}[s]
}

// Locked reports whether a write needs the ID.
func (s State) Locked() bool { return s == Leased || s == Breaking }

// What a client may ask for, in seconds.
const (
	DurationMin = 15
	DurationMax = 60
	BreakMax    = 60
)

// Kind is what is stored of the state of a lease. The numbers are durable.
type Kind byte

// The kinds. Time decides which state a lease of KindTaken or KindBroken is in.
const (
	KindNone Kind = iota
	KindTaken
	KindBroken
)

// Lease is what is stored of a lease. The zero value is that of what is not leased. It is in catalog rows: never rename a
// field.
type Lease struct {
	Kind Kind `json:"kind"`
	ID   ID   `json:"id"`
	// Seconds is what it was taken for, DurationMax at most; zero: it has no end.
	Seconds uint32 `json:"seconds,omitempty"`
	// Until is the time at which it runs out; of one that was broken, at which the break is over. Zero: it has no end.
	Until geo.Timestamp `json:"until,omitempty"`
}

// Valid reports whether an action can have left the lease: what is stored has one form.
func (l Lease) Valid() bool {
	switch l.Kind {
	case KindNone:
		return l == Lease{}
	case KindTaken:
		return l.Seconds == 0 && l.Until == 0 || l.Seconds >= DurationMin && l.Seconds <= DurationMax && l.Until != 0
	case KindBroken:
		return (l.Seconds == 0 || l.Seconds >= DurationMin && l.Seconds <= DurationMax) && l.Until != 0
	}
	return false
}

// Describe is for people; empty without a lease.
func (l Lease) Describe() string {
	switch {
	case l.Kind == KindNone:
		return ""
	case l.Kind == KindBroken:
		return fmt.Sprintf("lease %s broken at %s", l.ID, l.Until)
	case l.Until == 0:
		return fmt.Sprintf("lease %s without end", l.ID)
	}
	return fmt.Sprintf("lease %s until %s", l.ID, l.Until)
}

// State is that at a time.
func (l Lease) State(at geo.Timestamp) State {
	over := l.Until != 0 && at >= l.Until
	switch {
	case l.Kind == KindNone:
		return Available
	case l.Kind == KindBroken && over:
		return Broken
	case l.Kind == KindBroken:
		return Breaking
	case over:
		return Expired
	}
	return Leased
}

// Written is what a write that was let through leaves of it: what has ended is forgotten.
func (l Lease) Written(at geo.Timestamp) Lease {
	if !l.State(at).Locked() {
		return Lease{}
	}
	return l
}

// after is a time some seconds behind another one.
func after(at geo.Timestamp, seconds uint32) geo.Timestamp {
	return at + geo.Timestamp(seconds)*geo.TicksPerSecond
}
