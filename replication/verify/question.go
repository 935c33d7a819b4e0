package verify

import (
	"errors"

	"antipode/geo"
	"antipode/stamp/change"
)

// Op is what a question asks for.
type Op string

// The operations. Each may be repeated with the effect of one, but for OpOpen: a session whose answer
// was lost ends when it was idle for a while.
const (
	// OpOpen takes a snapshot of a range and returns the heads or cursors of an account in it.
	OpOpen Op = "open"
	// OpName adds prefixes of keys to those that the scans of the session walk.
	OpName Op = "name"
	// OpScan begins a scan, or returns how far it is, or a part of its result.
	OpScan Op = "scan"
	// OpRead returns units of rows as the location has them now, and the heads or cursors that belong to them. It needs
	// no session.
	OpRead Op = "read"
	// OpPage returns the rows of a span of keys as the location has them now, by key and sum, as many as fit an answer. It
	// needs no session.
	OpPage Op = "page"
	// OpClose ends a session.
	OpClose Op = "close"
)

// Question is one question to Sessions. It travels as JSON: fields are added, and never renamed.
type Question struct {
	Op Op
	// Account, Epoch and Source belong to OpOpen. Source is set at the location that numbers the streams
	// of the epoch: it answers with heads, and the other one with cursors.
	Account geo.Account `json:",omitempty"`
	Epoch   geo.Epoch   `json:",omitzero"`
	Source  bool        `json:",omitempty"`
	// Session is the one that OpOpen returned.
	Session uint64 `json:",omitempty"`
	// From is how many prefixes were named before these. Of OpRead each is a unit.
	From     int      `json:",omitempty"`
	Prefixes [][]byte `json:",omitempty"`
	Scan     *Scan    `json:",omitempty"`
	// Offset is where the part of the result begins that is asked for.
	Offset uint64 `json:",omitempty"`
	// Start, End and Lanes belong to OpPage: the keys of [Start, End) on these lanes. Values has their values come, too.
	Start  []byte `json:",omitempty"`
	End    []byte `json:",omitempty"`
	Lanes  Lanes  `json:",omitempty"`
	Values bool   `json:",omitempty"`
}

// LaneHead is the last record of a lane as a snapshot has it.
type LaneHead struct {
	Lane geo.Lane
	Head geo.Head
	// Named is the greatest number that a closed record named at the secondary, zero if none is above Head.
	Named geo.Seq `json:",omitempty"`
	// Stopped is why the stream may not go on, empty if it may. A fork that is being settled counts: see stands.
	Stopped string `json:",omitempty"`
	// Base is the one from which a fork is being settled here, zero if none is.
	Base geo.Head `json:",omitzero"`
}

// stands reports whether nothing of the lane is applied. While a fork is settled its records are: the
// two copies are compared like others.
func (h LaneHead) stands() bool {
	return h.Stopped != "" && h.Stopped != change.StopSettling.String()
}

// Answer is the answer to a Question.
type Answer struct {
	Session uint64 `json:",omitempty"`
	// Heads are those of OpOpen, in the order of lanes. A lane without a record is missing.
	Heads []LaneHead `json:",omitempty"`
	// Gone is set if there is no such session: it was idle for too long, or its node has stopped.
	Gone bool `json:",omitempty"`

	// Rows, Bytes, Chunks and ChunkBytes are how far the scan is.
	Rows       uint64 `json:",omitempty"`
	Bytes      uint64 `json:",omitempty"`
	Chunks     uint64 `json:",omitempty"`
	ChunkBytes uint64 `json:",omitempty"`
	// Done is set once the scan has ended, and Failed is its error.
	Done   bool   `json:",omitempty"`
	Failed string `json:",omitempty"`
	// Result is a part of the result, whose length is Total.
	Result []byte `json:",omitempty"`
	Total  uint64 `json:",omitempty"`
	// Damages lists damaged chunks, the first of Damaged.
	Damages []Damage `json:",omitempty"`
	Damaged uint64   `json:",omitempty"`
	// Next is where the page goes on, nil after its last row.
	Next []byte `json:",omitempty"`
}

// Bounds of questions and answers, below the 4 MiB of a call.
const (
	// prefixesPerCall is how many bytes of prefixes one question names, but for the first prefix.
	prefixesPerCall = 1 << 20
	// prefixesMax bounds the prefixes of a session.
	prefixesMax = 200_000
	// resultPerCall is how much of a result goes into one answer.
	resultPerCall = 1 << 20
	// damagesPerCall is how many damages go into one answer.
	damagesPerCall = damagesMax
)

// errQuestion: the question does not follow the protocol.
var errQuestion = errors.New("verify: malformed question")

// check reports what is wrong with a scan.
func (s *Scan) check() error {
	switch {
	case s == nil, s.Number == 0, len(s.Nodes) == 0, len(s.Nodes) > nodesMax,
		s.Want != WantSums && s.Want != WantParts && s.Want != WantRows,
		s.Payload != PayloadIgnored && s.Payload != PayloadPresent && s.Payload != PayloadRead:
		return errQuestion
	}
	for _, n := range s.Nodes {
		if !n.valid() {
			return errQuestion
		}
	}
	return nil
}
