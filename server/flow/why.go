package flow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stats"
)

// Threshold is the lag up to which all is well, if the query names none. At rest a closed record
// arrives every 250 ms.
const Threshold = time.Second

// CausesMax bounds the causes that are named of a service.
const CausesMax = 8

// Why finds what holds the services of an account back. Zero as threshold means Threshold.
//
// Its range and the catalog's decide about a service (R13). In each of them either a stream is behind a
// closed head, and the stage is that of its next record; or no closed record arrives, and the stage is that
// of the range. What concerns the whole location, such as a link that is cut, is named first.
func Why(name geo.Account, all wire.Flows, threshold time.Duration) wire.Why {
	threshold = cmp.Or(threshold, Threshold)
	e := endsOf(all)
	out := wire.Why{
		Account: name, Primary: e.account.Primary, Secondary: e.account.Secondary, ThresholdSeconds: threshold.Seconds(), Silent: e.silent,
	}
	streams := e.streams()
	for _, s := range geo.Services {
		w := wire.ServiceWhy{ServiceStatus: e.service(s.String(), streams).ServiceStatus}
		w.Causes = e.fellOut(s.String())
		w.OK = len(w.Causes) == 0 && w.Status == wire.Live && w.LagSeconds != nil && *w.LagSeconds <= threshold.Seconds()
		if !w.OK && len(w.Causes) == 0 {
			e.explain(&w, threshold)
		}
		out.Services = append(out.Services, w)
	}
	return out
}

// fellOut returns a cause for each range that decides about a service, if the account fell out of the outbox's
// budget there (R18): whatever else holds it back, nothing follows. The primary knows it first, also while the
// secondary is not reached.
func (e ends) fellOut(service string) (out []wire.Cause) {
	const why = string(stats.BehindOutbox)
	for _, r := range e.ranges() {
		if r.Service != service && r.Service != geo.Catalog.String() {
			continue
		}
		var where geo.Location
		if to := e.receiverOf(r.Range); to != nil && slices.ContainsFunc(to.Streams, func(s wire.ReceiverStream) bool { return s.Stopped == why }) {
			where = e.account.Secondary
		}
		if src := e.sourceOf(r.Range); src != nil && slices.ContainsFunc(src.Streams, func(s wire.SourceStream) bool { return s.Stopped == why }) {
			where = e.account.Primary
		}
		if where != "" {
			out = append(out, e.at(where, r, wire.Cause{
				Stage:  wire.StageStopped,
				Detail: why + ": the primary deleted changes that the secondary had not acknowledged; antipodectl account rebuild " + string(e.account.Name),
			}))
		}
	}
	return out
}

// explain finds the causes of a service that is not well.
func (e ends) explain(w *wire.ServiceWhy, threshold time.Duration) {
	if e.account.Secondary == "" {
		w.Causes = []wire.Cause{{Stage: wire.StageUnknown, Detail: "the account has no secondary"}}
		return
	}
	if e.receiver == nil {
		w.Causes = append(e.delayCause(), e.unanswered()...)
		return
	}
	if len(e.receiver.Services) == 0 {
		w.Causes = append(e.delayCause(), e.unreceived())
		return
	}
	link := e.linkCause()
	var causes []wire.Cause
	for _, r := range e.receiver.Ranges {
		if r.Service == w.Service || r.Service == geo.Catalog.String() {
			causes = append(causes, e.rangeCauses(r, link, threshold)...)
		}
	}
	if link != nil {
		causes = append([]wire.Cause{*link}, causes...)
	}
	causes = append(e.delayCause(), causes...)
	if len(causes) == 0 && w.Reason == string(stats.Clock) { // The time that is shown is itself ahead.
		causes = []wire.Cause{{Stage: wire.StageWaiting, For: "clock", Location: e.account.Secondary, Detail: aheadHere}}
	}
	if why := string(stats.Bootstrapping); w.Status == wire.Bootstrap || w.Reason == why { // In front of what else waits.
		causes = append([]wire.Cause{e.copyCause(why)}, causes...)
	}
	if len(causes) == 0 {
		causes = []wire.Cause{{Stage: wire.StageUnknown, Detail: "what the locations answered does not show it; ask again"}}
	}
	slices.SortStableFunc(causes, func(a, b wire.Cause) int { return cmp.Compare(urgency(a), urgency(b)) })
	w.Causes = causes[:min(len(causes), CausesMax)]
	w.More = len(causes) - len(w.Causes)
	if v, known := e.receiver.Speeds[w.Service]; known && v > 1.01 && w.LagSeconds != nil {
		in := *w.LagSeconds / (v - 1)
		w.CaughtUpInSeconds = &in
	}
}

// urgency orders causes: what an operator has to decide, what holds up everything, what fails, the rest by
// how far it is.
func urgency(c wire.Cause) int {
	switch c.Stage {
	case wire.StageStopped:
		return 0
	case wire.StageLink:
		return 1
	case wire.StageFailing:
		return 2
	case wire.StageClock:
		return 4
	case wire.StageUnknown:
		return 5
	}
	return 3
}

// rangeCauses finds what holds a source range back at the secondary. link is what concerns all ranges.
func (e ends) rangeCauses(r wire.RangeFlow, link *wire.Cause, threshold time.Duration) []wire.Cause {
	to := r.Receiver
	if to == nil {
		return []wire.Cause{e.at(e.account.Secondary, r, wire.Cause{Stage: wire.StageFailing, Detail: "how far the range is applied is not known: it has no leader here"})}
	}
	var out []wire.Cause
	old := func(t wire.Time) bool { return t.IsZero() || e.receiver.At.Sub(t.Time) > threshold }
	// What is new by the clock of the primary, which gave the time, is only made to look old here.
	late := func(t wire.Time) bool { return old(t) && !e.newThere(t, threshold) }
	failing := e.failing(r, late(to.Closed))
	if failing != nil && (late(to.Closed) || link == nil) {
		out = append(out, *failing)
	}
	behind := slices.Clone(to.Streams)
	slices.SortStableFunc(behind, func(a, b wire.ReceiverStream) int { return a.SyncTime.Compare(b.SyncTime.Time) })
	moves := true
	for _, s := range behind {
		switch {
		case s.Stopped != "":
			out = append(out, e.stopped(r, s))
		case s.ClosedHead <= s.Applied && s.Waits == nil || !late(s.SyncTime):
		case failing != nil: // Named for the range.
			moves = false
		default:
			moves = false
			if c := e.streamCause(r, s); link == nil || c.Stage == wire.StageWaiting && c.For != "gap" {
				out = append(out, c)
			}
		}
	}
	switch {
	case !moves || failing != nil || link != nil || !old(to.Closed):
	case late(to.Closed):
		out = append(out, e.rangeCause(r, threshold))
	default:
		out = append(out, e.at(e.account.Secondary, r, wire.Cause{Stage: wire.StageClock, Detail: fmt.Sprintf(
			"the clock here is %s ahead of the primary's, by which all is well; one location's clock is wrong", e.receiver.At.Sub(e.source.At.Time).Round(100*time.Millisecond),
		)}))
	}
	return out
}

// newThere reports whether a time of the primary is new by its own clock.
func (e ends) newThere(t wire.Time, threshold time.Duration) bool {
	if plantedbugs.Planted(plantedbugs.WhyOneClock) {
		return false
	}
	return e.source != nil && !t.IsZero() && e.source.At.Sub(t.Time) <= threshold
}

// at places a cause.
func (e ends) at(where geo.Location, r wire.RangeFlow, c wire.Cause) wire.Cause {
	c.Location, c.Range, c.Service = where, r.Range, r.Service
	if c.SyncTime.IsZero() && r.Receiver != nil {
		c.SyncTime = r.Receiver.Closed
	}
	return c
}

// ofStream places the cause of one stream.
func (e ends) ofStream(where geo.Location, r wire.RangeFlow, s wire.ReceiverStream, c wire.Cause) wire.Cause {
	lane := s.Lane
	c.Stream, c.Lane, c.SyncTime = s.Stream, &lane, s.SyncTime
	out := e.at(where, r, c)
	out.SyncTime = s.SyncTime
	return out
}

func (e ends) stopped(r wire.RangeFlow, s wire.ReceiverStream) wire.Cause {
	return e.ofStream(e.account.Secondary, r, s, wire.Cause{
		Stage: wire.StageStopped, Detail: s.Stopped + "; an operator has to decide: antipodectl fork show " + s.Stream,
	})
}

// slowReplica is from how long on a replica that takes what its leader has is named, where a range is late.
const slowReplica = 250 * time.Millisecond

// failing is why what is received of a range cannot be committed, or not in time where it is late; nil if it
// can.
func (e ends) failing(r wire.RangeFlow, late bool) *wire.Cause {
	c := wire.Cause{Stage: wire.StageFailing}
	var lead wire.LeadFlow
	if r.Lead != nil {
		lead = *r.Lead
	}
	switch to := r.Receiver; {
	case r.Leader == "":
		c.Detail = "the range has no leader at the secondary"
	case lead.Refuses != "":
		c.Detail = "commits at the secondary fail at " + r.Leader + ": " + lead.Refuses
	case lead.DiskFull:
		c.Detail = "commits at the secondary fail: the disk of " + r.Leader + ", or of a replica that it needs, is nearly full"
	case late && to.Commit == nil && lead.SlowestSeconds > slowReplica.Seconds():
		c.Detail, c.Seconds = "commits at the secondary wait for the replica on "+lead.Slowest, &lead.SlowestSeconds
	case to.Commit != nil:
		c.Detail = "commits at the secondary fail"
	case to.CommittingSeconds > Threshold.Seconds():
		c.Detail, c.Seconds = "a commit at the secondary does not end", &to.CommittingSeconds
	default:
		return nil
	}
	if t := r.Receiver.Commit; t != nil {
		c.Error, c.Seconds = t.Error, &t.Seconds
	}
	c = e.at(e.account.Secondary, r, c)
	return &c
}

// cutCause is that an operator cut the link, nil if nobody did.
func (e ends) cutCause() *wire.Cause {
	for _, f := range []*wire.Flow{e.source, e.receiver} {
		if f != nil && f.Link.State == wire.LinkCut {
			return &wire.Cause{Stage: wire.StageLink, Location: f.Location, Detail: f.Link.Held()}
		}
	}
	return nil
}

// linkCause is what keeps the locations apart, nil if nothing is known to.
func (e ends) linkCause() *wire.Cause {
	if c := e.cutCause(); c != nil {
		return c
	}
	if t := e.receiver.Bus; t != nil {
		return &wire.Cause{Stage: wire.StageLink, Location: e.receiver.Location, Detail: "the bus at the secondary does not answer", Error: t.Error, Seconds: &t.Seconds}
	}
	if t := e.receiver.Calls; t != nil && !e.leaderless() {
		return &wire.Cause{Stage: wire.StageLink, Location: e.receiver.Location, Detail: "calls to the primary fail", Error: t.Error, Seconds: &t.Seconds}
	}
	if c := e.publishCause(); c != nil {
		return c
	}
	if e.source == nil && e.quiet() {
		return &wire.Cause{Stage: wire.StageLink, Location: e.receiver.Location, Detail: "nothing comes from the primary, which could not be asked"}
	}
	return nil
}

// leaderless reports whether a range has no leader at the primary, which calls about it fail for: that is named for the range.
func (e ends) leaderless() bool {
	return e.source != nil && slices.ContainsFunc(e.source.Ranges, func(r wire.RangeFlow) bool { return r.Leader == "" })
}

// publishCause is what keeps the primary from publishing, other than a full bus; nil if nothing is known to.
func (e ends) publishCause() *wire.Cause {
	if e.source == nil {
		return nil
	}
	for _, r := range e.source.Ranges {
		if r.Source == nil || r.Source.Full {
			continue
		}
		if t := r.Source.Publish; t != nil {
			return &wire.Cause{
				Stage: wire.StageLink, Location: e.source.Location, Detail: "the primary cannot publish to the bus at the secondary", Error: t.Error, Seconds: &t.Seconds,
			}
		}
		if old := r.Source.OldestSeconds; old > Threshold.Seconds() {
			return &wire.Cause{
				Stage: wire.StageLink, Location: e.source.Location, Detail: "the bus at the secondary does not confirm what the primary publishes", Seconds: &old,
			}
		}
	}
	return nil
}

// quiet reports whether no message of any range came off the bus for a while.
func (e ends) quiet() bool {
	for _, r := range e.receiver.Ranges {
		if to := r.Receiver; to != nil && to.ContactSeconds != nil && *to.ContactSeconds <= Threshold.Seconds() {
			return false
		}
	}
	return true
}

// streamCause is the stage of the next record of a stream that is behind a closed head.
func (e ends) streamCause(r wire.RangeFlow, s wire.ReceiverStream) wire.Cause {
	here := func(c wire.Cause) wire.Cause { return e.ofStream(e.account.Secondary, r, s, c) }
	there := func(c wire.Cause) wire.Cause { return e.ofStream(e.account.Primary, r, s, c) }
	if src := e.sourceStream(r.Range, s.Stream); src != nil && (s.Waits == nil || s.Waits.Record == 0) {
		switch {
		case src.Held:
			return there(wire.Cause{Stage: wire.StageNotPublished, Detail: fmt.Sprintf("records up to #%d wait until their payload is pushed", src.Head)})
		case src.Published != nil && *src.Published <= s.Applied && src.Head > s.Applied:
			return there(wire.Cause{Stage: wire.StageNotPublished, Detail: fmt.Sprintf("records #%d to #%d are in the outbox", s.Applied+1, src.Head)})
		}
	}
	w := s.Waits
	switch {
	case w == nil:
		return here(wire.Cause{Stage: wire.StageInStream, Detail: fmt.Sprintf("record #%d is published and has not been received", s.Applied+1)})
	case w.Record == 0 || w.For == "gap":
		detail := fmt.Sprintf("record #%d is missing and is being pulled from the primary", s.Applied+1)
		return here(wire.Cause{Stage: wire.StageWaiting, For: "gap", Detail: detail, Error: w.Error, Seconds: &w.Seconds})
	}
	detail := map[string]string{
		"payload":    "its payload, which is fetched from the primary",
		"generation": "its table, container or queue in the catalog here",
		"gate":       "the gate of the account here",
		"clock":      "the clock here: its time is ahead of it; one location's clock is wrong",
	}[w.For]
	if t := e.receiver.Chunks; t != nil && w.For == "payload" {
		w.Error = t.Error
	}
	return here(wire.Cause{
		Stage: wire.StageWaiting, For: w.For, Detail: fmt.Sprintf("record #%d waits for %s", w.Record, cmp.Or(detail, w.For)), Error: w.Error, Seconds: &w.Seconds,
	})
}

// aheadHere is what a clock that differs from the primary's shows at the secondary.
const aheadHere = "times of the primary are ahead of the clock here; one location's clock is wrong"

// rangeCause is why no closed record of a range is taken, although nothing of it is known to wait.
func (e ends) rangeCause(r wire.RangeFlow, threshold time.Duration) wire.Cause {
	to := r.Receiver
	if to.Ahead {
		return e.at(e.account.Secondary, r, wire.Cause{
			Stage: wire.StageWaiting, For: "clock", Detail: aheadHere,
		})
	}
	unsent := func(detail string) wire.Cause {
		return e.at(e.account.Primary, r, wire.Cause{Stage: wire.StageNotPublished, Detail: detail})
	}
	if there := rangeOf(e.source, r.Range); there != nil {
		var records uint64
		if there.Source != nil {
			for _, s := range there.Source.Streams {
				if s.Published != nil && s.Head > *s.Published {
					records += s.Head - *s.Published
				}
			}
		}
		switch {
		case there.Source == nil && there.Leader == "":
			return unsent("the range has no leader at the primary")
		case there.Source == nil:
			return unsent("the leader of the range at the primary could not be asked")
		case there.Lead != nil && there.Lead.Refuses != "":
			return unsent("the primary commits nothing at " + there.Leader + ": " + there.Lead.Refuses)
		case there.Source.Full:
			return unsent("the stream is full: the secondary does not take what it holds, or closed it since a disk there is nearly full (antipodectl status)")
		case records > 0:
			return unsent(fmt.Sprintf("records of the account are in the outbox: %d", records))
		}
	}
	if to.ContactSeconds == nil || *to.ContactSeconds > threshold.Seconds() {
		return e.at(e.account.Secondary, r, wire.Cause{Stage: wire.StageInStream, Detail: "nothing of the range is received", Seconds: to.ContactSeconds})
	}
	return e.at(e.account.Secondary, r, wire.Cause{Stage: wire.StageInStream, Detail: "a backlog of the range drains"})
}

// sourceStream returns a stream as the primary knows it, nil if that is not known.
func (e ends) sourceStream(id geo.RangeID, name string) *wire.SourceStream {
	src := e.sourceOf(id)
	if src == nil {
		return nil
	}
	for i := range src.Streams {
		if src.Streams[i].Stream == name {
			return &src.Streams[i]
		}
	}
	return nil
}
