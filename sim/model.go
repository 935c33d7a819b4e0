package sim

import (
	"maps"

	"antipode/geo"
	"antipode/stamp/change"
)

// model is the state of a range as its log makes it: a plain twin of ranges.Machine
// in maps, built from committed groups alone.
type model struct {
	// parts holds the rows of each partition, by encoded partition and row.
	parts    map[string]map[string]string
	heads    map[geo.Stream]geo.Head
	cursors  map[geo.Stream]geo.Head
	trimmed  map[geo.Stream]geo.Seq
	received map[geo.Location]geo.Timestamp
	stops    map[geo.Stream]change.Stop
	gates    map[geo.Account]change.Gate
	// images are how far the images of accounts are, as they are stored.
	images map[geo.Account]string
	// compared is the incarnation under which the gates were compared with the catalog.
	compared geo.Incarnation
	// last is the greatest commit or closed time, of this location and received.
	last geo.Timestamp
}

func newModel() *model {
	return &model{
		parts: map[string]map[string]string{}, heads: map[geo.Stream]geo.Head{}, cursors: map[geo.Stream]geo.Head{},
		trimmed: map[geo.Stream]geo.Seq{}, received: map[geo.Location]geo.Timestamp{}, stops: map[geo.Stream]change.Stop{},
		gates: map[geo.Account]change.Gate{}, images: map[geo.Account]string{},
	}
}

// group applies a group that took effect.
func (m *model) group(data []byte) error {
	g, err := change.ParseGroup(data)
	if err != nil {
		return err
	}
	return g.Parts(m.part)
}

func (m *model) part(kind change.PartKind, body []byte) error {
	switch kind {
	case change.PartChange, change.PartReceived, change.PartReceivedCursor:
		r, err := change.ParseRecord(body)
		if err != nil {
			return err
		}
		m.record(kind, &r, body)
	case change.PartClosed:
		t, err := change.ParseClosedTime(body)
		if err != nil {
			return err
		}
		m.last = max(m.last, t)
	case change.PartReceivedClosed:
		c, err := change.ParseClosed(body)
		if err != nil {
			return err
		}
		m.received[c.Origin] = max(m.received[c.Origin], c.T)
		m.last = max(m.last, c.T)
	case change.PartTrim:
		st, to, err := change.ParseTrim(body)
		if err != nil {
			return err
		}
		if to == (change.OutboxHead{}) && m.trimmed[st] == m.heads[st].Seq { // It is forgotten.
			delete(m.trimmed, st)
			delete(m.heads, st)
			break
		}
		m.trimmed[st] = max(m.trimmed[st], min(to.Seq, m.heads[st].Seq))
	case change.PartGate, change.PartGateAgreed:
		a, g, err := change.ParseGatePart(body)
		if err != nil {
			return err
		}
		m.gate(a, g)
	case change.PartCompared:
		as, err := change.ParseCompared(body)
		if err != nil {
			return err
		}
		m.compared = as
	case change.PartImage:
		a, i, err := change.ParseImagePart(body)
		if err != nil {
			return err
		}
		m.images[a] = string(change.AppendImage(nil, i))
	case change.PartWipe:
		lower, upper, err := change.ParseWipe(body)
		if err != nil {
			return err
		}
		m.wipe(string(lower), string(upper))
	case change.PartStop:
		st, why, err := change.ParseStopPart(body)
		if err != nil {
			return err
		}
		m.stops[st] = why
		if why.Reason == change.NotStopped {
			delete(m.stops, st)
		}
		m.last = max(m.last, why.At)
	}
	return nil
}

// gate sets a gate. Streams of former epochs are dropped, but those that a primary has numbered itself.
func (m *model) gate(a geo.Account, g change.Gate) {
	m.gates[a] = g
	former := func(st geo.Stream) bool {
		own := g.Role == change.RolePrimary && st.Epoch.Location == g.Epoch.Location
		return st.Account == a && !own && st.Epoch.Compare(g.Epoch) < 0
	}
	maps.DeleteFunc(m.cursors, func(st geo.Stream, _ geo.Head) bool { return former(st) })
	maps.DeleteFunc(m.stops, func(st geo.Stream, _ change.Stop) bool { return former(st) })
}

// wipe deletes the rows with keys in [lower, upper).
func (m *model) wipe(lower, upper string) {
	for part, rows := range m.parts {
		maps.DeleteFunc(rows, func(row, _ string) bool { return part+row >= lower && part+row < upper })
	}
}

func (m *model) record(kind change.PartKind, r *change.Record, body []byte) {
	m.last = max(m.last, r.CommitTime)
	head := geo.Head{Seq: r.Seq, Hash: change.HashOf(body)}
	switch {
	case kind != change.PartChange:
		m.cursors[r.Stream()] = head
	case r.Seq != 0:
		m.heads[r.Stream()] = head
	}
	if kind != change.PartReceivedCursor {
		m.set(r)
	}
}

func (m *model) set(r *change.Record) {
	rows := m.parts[string(r.Partition)]
	if rows == nil {
		rows = map[string]string{}
		m.parts[string(r.Partition)] = rows
	}
	for _, op := range r.Ops {
		if op.Delete {
			delete(rows, string(op.Row))
		} else {
			rows[string(op.Row)] = string(op.Value)
		}
	}
}

// rows returns every key of the model with its value.
func (m *model) rows() map[string]string {
	out := map[string]string{}
	for p, rows := range m.parts {
		for row, v := range rows {
			out[p+row] = v
		}
	}
	return out
}
