package skew

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
)

// Agreement is what the measurements prove about the clock of this node.
type Agreement byte

// The kinds of agreement.
const (
	// Unsure: they prove neither. A node was just started or its clock was just set, or answers of
	// too many peers come too late or not at all.
	Unsure Agreement = iota
	// Agreed: the clock is within geo.ClockOffMax of those of a quorum, its own included, and is believed: see belief.
	Agreed
	// Off: it cannot be, whatever the peers that are not measured show, or it leapt ahead.
	Off
)

// Comparison is a reading of the wall clock and what is known of it.
type Comparison struct {
	// Now is the reading that was compared. A leader gives times by it, not by a later one: the clock
	// may be set in between.
	Now       time.Time
	Agreement Agreement
	// Better are the other nodes whose clocks are within geo.ClockOffMax of those of a quorum, if this
	// clock is Off.
	Better []geo.NodeID
}

// Compare reads the clock of this node and compares it with those of the nodes of a range, this one among
// them. began is a monotonic time of a moment ago.
func (t *Table) Compare(nodes []geo.NodeID, began time.Duration) Comparison {
	now := ReadSince(t.clock, began)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(now)
	c := Comparison{Now: now.Wall}
	if plantedbugs.Planted(plantedbugs.ClockUnchecked) {
		c.Agreement = Agreed
		return c
	}
	quorum := len(nodes)/2 + 1
	agree, off := 0, 0
	for _, id := range nodes {
		s, known := t.of(id)
		if !known {
			continue
		}
		switch d, err := distance(t.base, s.base), t.baseErr+s.err; {
		case id == t.self || d+err <= geo.ClockOffMax:
			if !s.leapt {
				agree++
			}
		case d-err > geo.ClockOffMax:
			off++
		}
	}
	switch {
	case t.belief.leapt > 0 || len(nodes)-off < quorum:
		c.Agreement = Off
		c.Better = t.better(nodes, quorum)
	case agree >= quorum && !t.belief.base.IsZero():
		c.Agreement = Agreed
	}
	return c
}

// CompareStamp is Compare with all nodes of the stamp, and decides whether the clock here may prove those of others: see Own.
// What those show that prove nothing themselves does not end that: they may have been started after a leap.
func (t *Table) CompareStamp(nodes []geo.NodeID, began time.Duration) Comparison {
	c := t.Compare(nodes, began)
	t.mu.Lock()
	defer t.mu.Unlock()
	apart := 0
	for _, id := range nodes {
		if s, known := t.of(id); known && !s.unsure && distance(t.base, s.base) > geo.ClockOffMax+t.baseErr+s.err {
			apart++
		}
	}
	switch {
	case c.Agreement == Agreed:
		t.belief.agreed = true
	case len(nodes)-apart < len(nodes)/2+1:
		t.belief.agreed = false
	}
	return c
}

// of returns what is known of the clock of a node, this one included.
func (t *Table) of(id geo.NodeID) (sample, bool) {
	if id == t.self {
		return sample{base: t.base, err: t.baseErr}, true
	}
	if p := t.peers[id]; p != nil {
		return t.best(p)
	}
	return sample{}, false
}

// better returns the other nodes whose clocks did not leap, if these agree with those of a quorum by the measurements here.
func (t *Table) better(nodes []geo.NodeID, quorum int) (out []geo.NodeID) {
	for _, id := range nodes {
		s, known := t.of(id)
		if !known || s.leapt {
			continue
		}
		agree := 0
		for _, other := range nodes {
			o, known := t.of(other)
			if known && distance(s.base, o.base)+s.err+o.err <= geo.ClockOffMax {
				agree++
			}
		}
		if id != t.self && agree >= quorum {
			out = append(out, id)
		}
	}
	return out
}

// Offset is how far the wall clock here is ahead of that of a peer, as last measured.
type Offset struct {
	Node  geo.NodeID
	Ahead time.Duration
	// Err bounds how wrong Ahead is, in either direction.
	Err time.Duration
}

// Offsets returns the offsets of all peers with a measurement, in order.
func (t *Table) Offsets() (out []Offset) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, p := range t.peers {
		if s, known := t.best(p); known {
			out = append(out, Offset{Node: id, Ahead: ahead(t.base, s.base), Err: t.baseErr + s.err})
		}
	}
	slices.SortFunc(out, func(a, b Offset) int { return int(a.Node) - int(b.Node) })
	return out
}

// Describe returns the offsets in words.
func Describe(offsets []Offset) string {
	if len(offsets) == 0 {
		return "the clock of no other node is known"
	}
	var words []string
	for _, o := range offsets {
		where := "ahead of"
		if o.Ahead < 0 {
			where = "behind"
		}
		words = append(words, fmt.Sprintf("%s %s that of node %d", o.Ahead.Abs().Round(10*time.Millisecond), where, o.Node))
	}
	return "its clock is " + strings.Join(words, ", ")
}
