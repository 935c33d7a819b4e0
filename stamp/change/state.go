package change

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"antipode/geo"
)

// Role of a location for an account.
type Role byte

// The roles. Durable: never renumber.
const (
	RoleNone      Role = 0
	RolePrimary   Role = 1
	RoleSecondary Role = 2
)

// Gate says what a range may do for an account (R7). The zero value, which
// stands for an absent gate, is closed.
type Gate struct {
	Epoch geo.Epoch
	Role  Role
	// Open: the primary takes commands of Epoch; the secondary takes records of it.
	Open bool
	// Numbered: changes get numbers and enter the outbox (R10).
	Numbered bool
	// Turn counts how often the gate of Epoch was closed for a move, and opened again since (R19): odd is
	// closed. The greater Turn marks the later of two gates of one epoch.
	Turn uint32
	// Agreed is the number of the primary's last epoch that the other location knows of. It is set while the other
	// location may not know of Epoch yet, but has a copy with which it may become the primary. 0 if it knows of
	// Epoch, or has no copy.
	Agreed geo.EpochNumber
}

// Fenced reports whether writes of the account need confirmed epochs (R21): the other location may have a copy.
func (g Gate) Fenced() bool { return g.Numbered || g.Agreed != 0 }

// PassedBy reports whether an epoch that is known of an account takes it from the primary whose gate this is. An
// epoch of another location does so if it is above the last epoch that was agreed on. The primary alone numbers the
// epochs above that, so they do not show which of the two is the later one.
func (g Gate) PassedBy(e geo.Epoch) bool {
	last := g.Epoch
	if g.Agreed != 0 && e.Location != g.Epoch.Location {
		last.Number = g.Agreed
	}
	return e.Compare(last) > 0
}

// AppendGate appends the encoded gate.
func AppendGate(dst []byte, g Gate) []byte {
	flags := byte(0)
	if g.Open {
		flags |= 1
	}
	if g.Numbered {
		flags |= 2
	}
	if g.Turn != 0 {
		flags |= 4
	}
	if g.Agreed != 0 {
		flags |= 8
	}
	dst = append(dst, formatVersion, byte(g.Role), flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(g.Epoch.Number))
	dst = appendShort(dst, string(g.Epoch.Location))
	if g.Turn != 0 {
		dst = binary.AppendUvarint(dst, uint64(g.Turn))
	}
	if g.Agreed != 0 {
		dst = binary.AppendUvarint(dst, uint64(g.Agreed))
	}
	return dst
}

// ParseGate decodes a gate that fills b.
func ParseGate(b []byte) (Gate, error) {
	rd := reader{b: b}
	g := readGate(&rd)
	if err := rd.end(); err != nil {
		return Gate{}, err
	}
	return g, nil
}

func readGate(rd *reader) Gate {
	var g Gate
	rd.version()
	role, flags := rd.byte(), rd.byte()
	switch { // Later versions may give a gate another role or flag within a part of another kind.
	case Role(role) > RoleSecondary:
		rd.unknown("a gate with role", role)
	case flags > 15:
		rd.unknown("a gate with flags", flags)
	}
	if rd.failed {
		return g
	}
	g.Role = Role(role)
	g.Open = flags&1 != 0
	g.Numbered = flags&2 != 0
	g.Epoch.Number = geo.EpochNumber(rd.uint64())
	g.Epoch.Location = geo.Location(rd.short())
	if flags&4 != 0 {
		turn := rd.uvarint()
		if turn == 0 || turn > math.MaxUint32 { // Each gate has one encoding.
			rd.failed = true
			return Gate{}
		}
		g.Turn = uint32(turn)
	}
	if flags&8 != 0 {
		if g.Agreed = geo.EpochNumber(rd.uvarint()); g.Agreed == 0 {
			rd.failed = true
			return Gate{}
		}
	}
	return g
}

// ParseGatePart decodes a PartGate or a PartGateAgreed.
func ParseGatePart(b []byte) (geo.Account, Gate, error) {
	rd := reader{b: b}
	a := geo.Account(rd.short())
	g := readGate(&rd)
	rd.failed = rd.failed || a == ""
	if err := rd.end(); err != nil {
		return "", Gate{}, err
	}
	return a, g, nil
}

func appendStream(dst []byte, s geo.Stream) []byte {
	dst = appendShort(dst, string(s.Account))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Epoch.Number))
	dst = appendShort(dst, string(s.Epoch.Location))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.Range))
	return append(dst, byte(s.Lane))
}

func readStream(rd *reader) geo.Stream {
	var s geo.Stream
	s.Account = geo.Account(rd.short())
	s.Epoch.Number = geo.EpochNumber(rd.uint64())
	s.Epoch.Location = geo.Location(rd.short())
	s.Range = geo.RangeID(rd.uint32())
	s.Lane = geo.Lane(rd.byte())
	return s
}

// AppendHead appends a head: number and hash of a stream's last record.
func AppendHead(dst []byte, h geo.Head) []byte {
	dst = append(dst, formatVersion)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Seq))
	return binary.LittleEndian.AppendUint64(dst, uint64(h.Hash))
}

// ParseHead decodes a head that fills b.
func ParseHead(b []byte) (geo.Head, error) {
	rd := reader{b: b}
	rd.version()
	h := geo.Head{Seq: geo.Seq(rd.uint64()), Hash: geo.Hash(rd.uint64())}
	if err := rd.end(); err != nil {
		return geo.Head{}, err
	}
	return h, nil
}

// PairsMax bounds the closed times a stream that is behind remembers (R13).
// Dropping one in between is safe: the sync time then moves in larger steps.
const PairsMax = 64

// Pair is a closed time and the stream's last record as of it.
type Pair struct {
	T    geo.Timestamp
	Head geo.Head
	// Wall is that of the closed record: see Closed.Wall.
	Wall geo.Timestamp
}

// Cursor is how far a stream is applied at the receiver, durable with the data.
type Cursor struct {
	// Applied is the last record applied, with its hash.
	Applied geo.Head
	// Time and Incarnation are the commit time of that record and the incarnation it was numbered
	// in.
	Time        geo.Timestamp
	Incarnation geo.Incarnation
	// Sync is the stream's sync time while it is behind, that is while Pairs is
	// not empty; a stream at its head has the range's closed time.
	Sync geo.Timestamp
	// SyncWall is that of the closed record of Sync: see Closed.Wall.
	SyncWall geo.Timestamp
	// Pairs are the closed times not yet reached, oldest first.
	Pairs []Pair
}

// AppendCursor appends the encoded cursor.
func AppendCursor(dst []byte, c *Cursor) []byte {
	walled := c.walled()
	dst = append(dst, walledVersion(walled))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Applied.Seq))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Applied.Hash))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Time))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Incarnation))
	if len(c.Pairs) > PairsMax {
		panic(fmt.Sprintf("change: cursor of %d pairs, at most %d", len(c.Pairs), PairsMax))
	}
	dst = append(dst, byte(len(c.Pairs)))
	if len(c.Pairs) == 0 {
		return dst
	}
	dst = appendWalled(dst, c.Sync, c.SyncWall, walled)
	for _, p := range c.Pairs {
		dst = appendWalled(dst, p.T, p.Wall, walled)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Head.Seq))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Head.Hash))
	}
	return dst
}

// walled reports whether a time of the cursor has a wall.
func (c *Cursor) walled() bool {
	return len(c.Pairs) > 0 && (c.SyncWall != 0 || slices.ContainsFunc(c.Pairs, func(p Pair) bool { return p.Wall != 0 }))
}

// appendWalled appends a closed time, with its wall where the cursor has walls.
func appendWalled(dst []byte, t, wall geo.Timestamp, walled bool) []byte {
	if dst = binary.LittleEndian.AppendUint64(dst, uint64(t)); walled {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(wall))
	}
	return dst
}

// readWalled is the inverse of appendWalled.
func readWalled(rd *reader, walled bool) (t, wall geo.Timestamp) {
	if t = geo.Timestamp(rd.uint64()); walled {
		wall = geo.Timestamp(rd.uint64())
	}
	return t, wall
}

// ParseCursor decodes a cursor that fills b.
func ParseCursor(b []byte) (Cursor, error) {
	rd := reader{b: b}
	var c Cursor
	walled := len(b) > 0 && b[0] == versionWalled
	if walled {
		rd.byte()
	} else {
		rd.version()
	}
	c.Applied = geo.Head{Seq: geo.Seq(rd.uint64()), Hash: geo.Hash(rd.uint64())}
	c.Time, c.Incarnation = geo.Timestamp(rd.uint64()), geo.Incarnation(rd.uint64())
	n := int(rd.byte())
	if rd.failed = rd.failed || n > PairsMax; rd.failed {
		return Cursor{}, rd.end()
	}
	if n > 0 {
		c.Sync, c.SyncWall = readWalled(&rd, walled)
	}
	for range n {
		t, wall := readWalled(&rd, walled)
		c.Pairs = append(c.Pairs, Pair{t, geo.Head{Seq: geo.Seq(rd.uint64()), Hash: geo.Hash(rd.uint64())}, wall})
	}
	rd.failed = rd.failed || walled && !c.walled() // Each cursor has one encoding.
	if err := rd.end(); err != nil {
		return Cursor{}, err
	}
	return c, nil
}

// AppliedState is where a range's state stands in its log.
type AppliedState struct {
	// EntryID is the last Raft entry applied.
	geo.EntryID
	// Group is the last group that took effect (R1).
	Group GroupID
	// Last is the greatest commit or closed time applied (R6).
	Last geo.Timestamp
}

// AppendApplied appends the encoded applied state.
func AppendApplied(dst []byte, a AppliedState) []byte {
	dst = append(dst, formatVersion)
	for _, v := range [...]uint64{a.Index, a.Term, a.Group.Term, a.Group.Number, uint64(a.Last)} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}

// ParseApplied decodes an applied state that fills b.
func ParseApplied(b []byte) (AppliedState, error) {
	rd := reader{b: b}
	var a AppliedState
	rd.version()
	a.Index, a.Term = rd.uint64(), rd.uint64()
	a.Group = GroupID{rd.uint64(), rd.uint64()}
	a.Last = geo.Timestamp(rd.uint64())
	if err := rd.end(); err != nil {
		return AppliedState{}, err
	}
	return a, nil
}
