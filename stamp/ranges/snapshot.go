package ranges

import (
	"bytes"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/route"
	"antipode/stamp/state"
)

// Spans are the keys of a range in a state store, ascending: what belongs to the range
// (applied state, gates, heads, outbox, cursors, closed times), then what clients
// stored. Together with the log above the applied index they are the whole replica.
func Spans(id geo.RangeID) []state.Span {
	local, data := keys.RangeLocal(id), keys.AppendService(nil, Service(id))
	return []state.Span{{Lower: local, Upper: keys.PrefixEnd(local)}, {Lower: data, Upper: keys.PrefixEnd(data)}}
}

// ChunkSpans are those of Spans whose rows may name chunks, if of what clients stored in a service only those in the spans
// that in returns may. Nil stands for all.
func ChunkSpans(id geo.RangeID, in func(geo.Service) []geo.Span) []state.Span {
	spans := Spans(id)
	if in == nil {
		return spans
	}
	spans = spans[:1] // The outbox is in the first.
	for _, s := range in(Service(id)) {
		spans = append(spans, state.Span{Lower: []byte(s.Start), Upper: []byte(s.End)})
	}
	return spans
}

// Span is the span of clients' keys that a range holds, and the version of the descriptor that says
// so. A stamp has one range for each service so far, whose span never changes.
func Span(id geo.RangeID) (geo.Span, geo.DescriptorVersion) {
	d := route.Unsplit(id)
	return d.Span, d.Version
}

// Service is the service whose keys a range holds. A split does not change it.
func Service(id geo.RangeID) geo.Service { return route.Unsplit(id).Service }

// AppliedIn returns the applied state of a range in a view of a state store; zero if the view
// does not have the range.
func AppliedIn(g kv.Getter, id geo.RangeID) (change.AppliedState, error) {
	v, ok, err := g.Get(keys.Applied(id))
	if err != nil || !ok {
		return change.AppliedState{}, err
	}
	return change.ParseApplied(v)
}

// Replace runs replace, which puts another state of the range into the store, and then loads
// that state. A concurrent reader may see the old streams over the new rows, and an old state
// after a new one. That does no harm: a replica that is replaced does not lead, and a reader
// of a follower compares Machine.replaced. After an error the replica is out of service. It is
// called while nothing is applied, by any goroutine.
func (m *Machine) Replace(replace func() error) error {
	m.version.Store(0)
	m.replaced.Add(1)
	if err := replace(); err != nil {
		return err
	}
	fresh, err := OpenMachine(m.id, m.state, nil, m.nodes...)
	if err == nil && Service(m.id) == geo.Catalog {
		err = m.takeLevels()
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied, m.members, m.gates, m.outbox = fresh.applied, fresh.members, fresh.gates, fresh.outbox
	m.received, m.stops, m.compared = fresh.received, fresh.stops, fresh.compared
	m.history = fresh.history
	m.changedAt()
	return nil
}

// OutboxChunks returns the payload chunks that a row of a range names if the row is a record of
// the outbox. local is false for a row that clients stored, whose chunks only its service
// knows.
func OutboxChunks(id geo.RangeID, key, value []byte) (refs []extent.Ref, local bool, err error) {
	switch {
	case !bytes.HasPrefix(key, keys.RangeLocal(id)):
		return nil, false, nil
	case !bytes.HasPrefix(key, keys.OutboxAll(id)):
		return nil, true, nil
	}
	_, encoded, err := change.ParseOutboxRow(value)
	if err != nil {
		return nil, true, err
	}
	r, err := change.ParseRecord(encoded)
	return r.Chunks, true, err
}
