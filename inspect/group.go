package inspect

import (
	"fmt"
	"strings"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// Group is what one entry changes, whole or not at all (R1).
type Group struct {
	ID    string `json:"id"`
	Pred  string `json:"after"`
	Parts []Part `json:"parts"`
}

// Part is one part of a group.
type Part struct {
	Part string `json:"part"`
	// Of a change, and of a received record.
	Stream     string   `json:"stream,omitempty"`
	Seq        uint64   `json:"seq,omitempty"`
	CommitTime string   `json:"commit_time,omitempty"`
	Partition  string   `json:"partition,omitempty"`
	Ops        []string `json:"ops,omitempty"`
	Chunks     []string `json:"chunks,omitempty"`
	// Detail says what the other kinds do.
	Detail string `json:"detail,omitempty"`
}

// Text is one line.
func (p Part) Text() string {
	if p.Detail != "" {
		return p.Part + "  " + p.Detail
	}
	out := fmt.Sprintf("%s  %s  %s  %s", p.Part, p.CommitTime, orDash(p.Partition), strings.Join(p.Ops, ", "))
	if p.Seq > 0 {
		out += fmt.Sprintf("  %s #%d", p.Stream, p.Seq)
	}
	if len(p.Chunks) > 0 {
		out += fmt.Sprintf("  %d chunks", len(p.Chunks))
	}
	return out
}

func groupID(id change.GroupID) string { return fmt.Sprintf("%d.%d", id.Term, id.Number) }

func describePart(kind change.PartKind, body []byte) (p Part, err error) {
	switch kind {
	case change.PartChange:
		return describeRecord("change", body)
	case change.PartReceived:
		return describeRecord("received", body)
	case change.PartReceivedCursor:
		return describeRecord("received-cursor", body)
	case change.PartClosed:
		p.Part = "closed"
		t, err := change.ParseClosedTime(body)
		p.Detail = t.String()
		return p, err
	case change.PartReceivedClosed:
		p.Part = "received-closed"
		c, err := change.ParseClosed(body)
		p.Detail = closedText(c)
		return p, err
	case change.PartGate, change.PartGateAgreed:
		p.Part = "gate"
		a, g, err := change.ParseGatePart(body)
		p.Detail = fmt.Sprintf("%s: %s", a, gateText(g))
		return p, err
	case change.PartGeneration:
		p.Part = "generation-closed"
		k, err := keys.ParseRangeKey(body)
		p.Detail = containerText(k.Partition)
		return p, err
	case change.PartTrim:
		p.Part = "outbox-trim"
		s, to, err := change.ParseTrim(body)
		p.Detail = fmt.Sprintf("%s up to %d", s, to.Seq)
		return p, err
	case change.PartWipe:
		p.Part = "wipe"
		lower, upper, err := change.ParseWipe(body)
		p.Detail = fmt.Sprintf("%x up to %x", lower, upper)
		if of, generation, parsed := keys.ParseSpan(lower, upper); parsed == nil && generation {
			p.Detail = "of " + containerText(of)
		} else if parsed == nil {
			p.Detail = fmt.Sprintf("of %s %s", of.Service, of.Account)
		}
		return p, err
	case change.PartReceivedBase:
		return describeRecord("received-base", body)
	case change.PartImage:
		p.Part = "image"
		a, m, err := change.ParseImagePart(body)
		p.Detail = fmt.Sprintf("%s: %s", a, imageText(m))
		return p, err
	case change.PartCompared:
		p.Part = "gates-compared"
		as, err := change.ParseCompared(body)
		p.Detail = fmt.Sprintf("incarnation %d", as)
		return p, err
	case change.PartLevels:
		p.Part = "levels"
		l, err := change.ParseLevels(body)
		p.Detail = levelsText(l)
		return p, err
	case change.PartStop:
		p.Part = "stop"
		s, why, err := change.ParseStopPart(body)
		p.Detail = fmt.Sprintf("%s: %s", s, stopText(why))
		return p, err
	}
	return p, fmt.Errorf("%w: part of kind %d", change.ErrMalformed, kind)
}

func describeRecord(part string, body []byte) (p Part, err error) {
	r, err := change.ParseRecord(body)
	if err != nil {
		return Part{Part: part}, err
	}
	p = Part{Part: part, Seq: uint64(r.Seq), CommitTime: r.CommitTime.String(), Partition: fmt.Sprintf("%x", r.Partition)}
	if r.Seq > 0 {
		p.Stream = r.Stream().String()
	}
	where, _, err := keys.ParsePartition(r.Partition)
	if err == nil {
		p.Partition = partitionText(where)
	}
	for _, op := range r.Ops {
		verb := "set"
		if op.Delete {
			verb = "delete"
		}
		text := verb + " " + rowText(where.Service, op.Row)
		if !op.Delete {
			text += fmt.Sprintf(" (%d bytes)", len(op.Value))
		}
		p.Ops = append(p.Ops, text)
	}
	for _, c := range r.Chunks {
		p.Chunks = append(p.Chunks, c.ID.String())
	}
	return p, nil
}

func gateText(g change.Gate) string {
	role := map[change.Role]string{change.RoleNone: "none", change.RolePrimary: "primary", change.RoleSecondary: "secondary"}[g.Role]
	state := "closed"
	if g.Open {
		state = "open"
	}
	numbered := "not numbered"
	if g.Numbered {
		numbered = "numbered"
	}
	if g.Agreed != 0 {
		numbered += fmt.Sprintf(", epoch %d agreed on", g.Agreed)
	}
	return fmt.Sprintf("%s of epoch %s, %s, %s", role, g.Epoch, state, numbered)
}

func closedText(c change.Closed) string {
	full := ""
	if c.Full {
		full = ", full"
	}
	made := ""
	if c.Wall != 0 {
		made = fmt.Sprintf(" at %s", c.Wall)
	}
	return fmt.Sprintf("%s range %d: (%s, %s]%s, %d heads%s", c.Origin, c.Range, c.T0, c.T, made, len(c.Heads), full)
}

func stopText(s change.Stop) string {
	if s.Reason == change.NotStopped {
		return "may go on"
	}
	return fmt.Sprintf("%s: #%d, hash %016x here; #%d, hash %016x there; since %s", s.Reason, s.Here.Seq, uint64(s.Here.Hash),
		s.There.Seq, uint64(s.There.Hash), s.At)
}

// imageText says how far an image is.
func imageText(m change.Image) string {
	text := fmt.Sprintf("epoch %s, %d rows, %d bytes, %d bytes of payload", m.Epoch, m.Copied.Rows, m.Copied.Bytes, m.Copied.Payload)
	if m.Done != nil {
		return text + ", complete"
	}
	return fmt.Sprintf("%s, next key %x", text, m.Next)
}

// containerText names a generation of a table, container or queue.
func containerText(p keys.Partition) string {
	return fmt.Sprintf("%s %s/%s@%d.%s", p.Service, p.Account, p.Container, p.Generation.Epoch, p.Generation.Created)
}

func partitionText(p keys.Partition) string {
	if p.Service == geo.Catalog {
		return fmt.Sprintf("catalog %s/%s", p.Account, p.Object)
	}
	return fmt.Sprintf("%s/%q", containerText(p), p.Object)
}

func levelsText(l change.Levels) string { return fmt.Sprintf("floor %d, active %d", l.Floor, l.Active) }
