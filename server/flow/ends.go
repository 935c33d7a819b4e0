package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	wire "antipode/client/admin"
	"antipode/geo"
)

// ends are the two ends of an account's streams, as far as they answered.
type ends struct {
	account wire.Account
	// source is the flow of the primary, receiver that of the secondary; nil if it did not answer.
	source, receiver *wire.Flow
	silent           []wire.SilentLocation
}

func endsOf(all wire.Flows) ends {
	out := ends{silent: slices.Clone(all.Silent)}
	for i := range all.Flows {
		f := &all.Flows[i]
		if out.account.Name == "" || f.Account.Epoch.Number > out.account.Epoch.Number {
			out.account = f.Account
		}
	}
	for i := range all.Flows {
		switch f := &all.Flows[i]; f.Location {
		case out.account.Primary:
			out.source = f
		case out.account.Secondary:
			out.receiver = f
		}
	}
	for _, l := range []geo.Location{out.account.Primary, out.account.Secondary} {
		known := l == "" || slices.ContainsFunc(all.Flows, func(f wire.Flow) bool { return f.Location == l }) ||
			slices.ContainsFunc(out.silent, func(s wire.SilentLocation) bool { return s.Location == l })
		if !known {
			out.silent = append(out.silent, wire.SilentLocation{Location: l, Reason: "this port does not reach it"})
		}
	}
	return out
}

// service is how far a service is, by the streams that decide about it.
func (e ends) service(service string, streams []wire.StreamLag) wire.ServiceLag {
	out := wire.ServiceLag{ServiceStatus: wire.ServiceStatus{Service: service}}
	if e.receiver == nil {
		return out
	}
	if i := slices.IndexFunc(e.receiver.Services, func(s wire.ServiceStatus) bool { return s.Service == service }); i >= 0 {
		out.ServiceStatus = e.receiver.Services[i]
	}
	if e.copying(out.ServiceStatus) {
		return out
	}
	var sum uint64
	for _, st := range streams {
		if st.Service != service && st.Service != geo.Catalog.String() {
			continue
		}
		if st.LagRecords == nil {
			return out
		}
		sum += *st.LagRecords
	}
	for _, r := range e.receiver.Ranges {
		if r.Service != service && r.Service != geo.Catalog.String() || e.sourceOf(r.Range) != nil {
			continue
		}
		if r.Receiver == nil {
			return out // What it holds is not known.
		}
		out.AtLeast = true
	}
	out.LagRecords = &sum
	return out
}

// copying reports whether the copy of a service has rows to come that have no number yet, so that none can be counted: its
// first copy is being made, or the secondary does not know of the primary's epoch yet.
func (e ends) copying(s wire.ServiceStatus) bool {
	return s.Status == wire.Bootstrap || s.Reason == string(wire.Bootstrap) ||
		e.source != nil && e.source.Account.Epoch != e.receiver.Account.Epoch
}

// streams are the streams of all ranges that either end knows, in the order of ranges and lanes.
func (e ends) streams() []wire.StreamLag {
	var out []wire.StreamLag
	for _, r := range e.ranges() {
		byName := map[string]*wire.StreamLag{}
		of := func(name string, lane geo.Lane) *wire.StreamLag {
			if byName[name] == nil {
				byName[name] = &wire.StreamLag{Stream: name, Service: r.Service, Range: r.Range, Lane: lane}
			}
			return byName[name]
		}
		source := e.sourceOf(r.Range)
		if source != nil {
			for _, s := range source.Streams {
				if s.Ended && e.left(r.Range, s.Stream) {
					continue
				}
				head := s.Head
				st := of(s.Stream, s.Lane)
				st.Head, st.Heads = &head, wire.HeadsPrimary
				if to := e.receiverOf(r.Range); to != nil { // Replaced below if it has a cursor.
					e.applied(st, wire.ReceiverStream{SyncTime: to.Closed})
				}
			}
		}
		if to := e.receiverOf(r.Range); to != nil {
			for _, s := range to.Streams {
				if source != nil && e.drained(*source, s) {
					continue
				}
				st := of(s.Stream, s.Lane)
				if source == nil && !to.Closed.IsZero() {
					head := max(s.ClosedHead, s.Applied)
					st.Head, st.Heads = &head, wire.HeadsClosed
				}
				e.applied(st, s)
			}
		}
		for _, st := range byName {
			out = append(out, *st)
		}
	}
	slices.SortFunc(out, func(a, b wire.StreamLag) int {
		return cmp.Or(cmp.Compare(a.Range, b.Range), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Stream, b.Stream))
	})
	return out
}

// left reports whether the secondary has left the epoch of a stream, as the primary has: nothing of it is behind then.
func (e ends) left(id geo.RangeID, stream string) bool {
	to := e.receiverOf(id)
	return to != nil && e.receiver.Account.Epoch == e.source.Account.Epoch &&
		!slices.ContainsFunc(to.Streams, func(s wire.ReceiverStream) bool { return s.Stream == stream })
}

// drained reports whether a stream of the secondary is of an epoch that both locations have left, without anything that waits
// there, and the primary has no head of it any more: nothing of it is behind either.
func (e ends) drained(source wire.SourceFlow, s wire.ReceiverStream) bool {
	if s.Stopped != "" || s.Waits != nil || s.ClosedHead > s.Applied || e.receiver.Account.Epoch != e.source.Account.Epoch ||
		slices.ContainsFunc(source.Streams, func(o wire.SourceStream) bool { return o.Stream == s.Stream }) {
		return false
	}
	_, rest, _ := strings.Cut(s.Stream, "/")
	text, _, _ := strings.Cut(rest, "/")
	of, ok := geo.ParseEpoch(text)
	return ok && of.Compare(geo.Epoch(e.source.Account.Epoch)) < 0
}

// applied sets how far the secondary has applied a stream.
func (e ends) applied(st *wire.StreamLag, s wire.ReceiverStream) {
	st.Applied, st.Stopped, st.SyncTime, st.LagSeconds = &s.Applied, s.Stopped, s.SyncTime, nil
	if !s.SyncTime.IsZero() {
		lag := max(0, e.receiver.At.Sub(s.SyncTime.Time)).Seconds()
		st.LagSeconds = &lag
	}
	if st.Head != nil {
		var behind uint64
		if *st.Head > s.Applied {
			behind = *st.Head - s.Applied
		}
		st.LagRecords = &behind
	}
}

// lane returns the streams of a lane of a service. Without a record the lane is as far as the
// closed time of its range.
func (e ends) lane(streams []wire.StreamLag, service string, lane geo.Lane) (out []wire.StreamLag) {
	for _, st := range streams {
		if st.Service == service && st.Lane == lane {
			out = append(out, st)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, r := range e.ranges() {
		if r.Service != service {
			continue
		}
		st := wire.StreamLag{Service: service, Range: r.Range, Lane: lane}
		var none uint64
		if e.sourceOf(r.Range) != nil {
			st.Head, st.Heads = &none, wire.HeadsPrimary
		}
		if to := e.receiverOf(r.Range); to != nil {
			if st.Head == nil && !to.Closed.IsZero() {
				st.Head, st.Heads = &none, wire.HeadsClosed
			}
			e.applied(&st, wire.ReceiverStream{SyncTime: to.Closed})
		}
		out = append(out, st)
	}
	return out
}

// ranges are the ranges that either end names.
func (e ends) ranges() []wire.RangeFlow {
	if e.receiver != nil {
		return e.receiver.Ranges
	}
	if e.source != nil {
		return e.source.Ranges
	}
	return nil
}

// sourceOf returns a range as its leader at the primary knows it, nil if that is not known.
func (e ends) sourceOf(id geo.RangeID) *wire.SourceFlow {
	if r := rangeOf(e.source, id); r != nil {
		return r.Source
	}
	return nil
}

// receiverOf returns a range as the secondary has applied it, nil if that is not known.
func (e ends) receiverOf(id geo.RangeID) *wire.ReceiverFlow {
	if r := rangeOf(e.receiver, id); r != nil {
		return r.Receiver
	}
	return nil
}

func rangeOf(f *wire.Flow, id geo.RangeID) *wire.RangeFlow {
	if f == nil {
		return nil
	}
	for i := range f.Ranges {
		if f.Ranges[i].Range == id {
			return &f.Ranges[i]
		}
	}
	return nil
}

// delayCause is that an operator delays the link, which is in front of what else keeps the locations apart; none if nobody does.
func (e ends) delayCause() []wire.Cause {
	for _, f := range []*wire.Flow{e.source, e.receiver} {
		if f != nil && f.Link.State == wire.LinkDelayed {
			return []wire.Cause{{Stage: wire.StageLink, Location: f.Location, Detail: f.Link.Held()}}
		}
	}
	return nil
}

// unanswered is what is known while the secondary could not be asked: a former primary that does not follow yet is named as one.
func (e ends) unanswered() (out []wire.Cause) {
	if e.account.FailoverPhase == wire.FailoverTaken {
		out = append(out, e.copyCause(""))
	}
	if c := e.publishCause(); c != nil {
		out = append(out, *c)
	}
	return append(out, wire.Cause{Stage: wire.StageUnknown, Location: e.account.Secondary, Detail: "the secondary could not be asked"})
}

// unreceived is why no process of the secondary that answered receives.
func (e ends) unreceived() wire.Cause {
	silent := strings.Join(e.receiver.Silent, ", ")
	var catalog wire.RangeFlow
	for _, r := range e.receiver.Ranges {
		if r.Service == geo.Catalog.String() {
			catalog = r
		}
	}
	failing := func(detail string) wire.Cause {
		return e.at(e.account.Secondary, catalog, wire.Cause{Stage: wire.StageFailing, Detail: detail})
	}
	switch {
	case e.cutCause() != nil:
		return *e.cutCause()
	case e.receiver.Account.Epoch.Number < e.account.Epoch.Number:
		return wire.Cause{Stage: wire.StageLink, Location: e.account.Secondary, Detail: fmt.Sprintf(
			"it does not know yet that it is the secondary: it was not reached since the failover to %s", e.account.Primary)}
	case catalog.Leader == "" && silent == "":
		return failing("no process there receives: the catalog range has no leader")
	case catalog.Leader == "":
		return failing("no process there receives: the catalog range has no leader that is known; silent are " + silent)
	case silent == "":
		return failing("no process there receives, although " + catalog.Leader + " leads the catalog range")
	}
	return wire.Cause{
		Stage: wire.StageUnknown, Location: e.account.Secondary, Detail: "the process that receives may be one that does not answer: " + silent,
	}
}
