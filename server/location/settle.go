package location

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/verify"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// settleEvery is how often a location looks for forks that are being settled.
const settleEvery = time.Second

// resolveWait bounds how long ResolveFork waits for the other location.
const resolveWait = 5 * time.Second

// ResolveFork begins to settle the fork of a stream that this location numbers: see ranges.Settle. What follows goes
// on alone, whatever process has the catalog's leader: see settleForks. A second call does nothing.
func (l *Location) ResolveFork(ctx context.Context, q wire.ResolveFork) (wire.ForkResolved, error) {
	refused := func(status int, code, why string) error {
		return &wire.Error{Status: status, Code: code, Message: fmt.Sprintf("could not resolve the fork of %s at %s: %s", q.StreamName, l.o.Name, why)}
	}
	st := geo.Stream{Account: q.Account, Epoch: geo.Epoch(q.Epoch), Range: q.Range, Lane: q.Lane}
	d, ok := l.o.Route.Range(st.Range)
	if !ok || st.Lane >= geo.LaneCount {
		return wire.ForkResolved{}, refused(http.StatusNotFound, wire.CodeNotStopped, "there is no such stream: antipodectl fork list shows them")
	}
	stamp, err := l.Stamp()
	if err != nil {
		return wire.ForkResolved{}, err
	}
	a, err := l.Directory.Account(ctx, st.Account)
	switch {
	case err != nil:
		return wire.ForkResolved{}, err
	case a.Primary != l.o.Name:
		return wire.ForkResolved{}, refused(http.StatusConflict, wire.CodeAskPrimary, "the primary of the account resolves its forks: "+string(a.Primary))
	case a.Secondary == "":
		return wire.ForkResolved{}, refused(http.StatusConflict, wire.CodeNoSecondary, fmt.Sprintf("the account is %s and has one copy", a.Redundancy))
	case !a.MaySettle():
		return wire.ForkResolved{}, refused(http.StatusConflict, wire.CodeBusy, fmt.Sprintf("the operation %s of the account is under way", a.Operation.Kind))
	case q.Keep != a.Primary && q.Keep != a.Secondary:
		return wire.ForkResolved{}, refused(http.StatusBadRequest, wire.CodeKeepOne, fmt.Sprintf(
			"the side of %s or of %s can be kept, not that of %q", a.Primary, a.Secondary, q.Keep))
	}
	far, err := l.stoppedThere(ctx, st)
	if err != nil {
		return wire.ForkResolved{}, refused(http.StatusServiceUnavailable, wire.CodeOtherAway, fmt.Sprintf("%s does not answer: %v", l.o.Other, err))
	}
	if st.Range == l.o.Route.Catalog() {
		return wire.ForkResolved{}, refused(http.StatusConflict, wire.CodeStopKept, whyNotCatalog(a, far.Stopped))
	}
	switch far.Stopped {
	case change.StopLost.String():
		if q.Keep != a.Primary {
			return wire.ForkResolved{}, refused(http.StatusConflict, wire.CodeKeepPrimary, fmt.Sprintf(
				"%s lost records that it had acknowledged: only the side of the primary can be kept", a.Secondary))
		}
	case change.StopForked.String(), change.StopSettling.String():
	case "":
		return wire.ForkResolved{}, refused(http.StatusConflict, wire.CodeNotStopped, fmt.Sprintf("the stream goes on at %s: it is not stopped there, or not yet", l.o.Other))
	default:
		return wire.ForkResolved{}, refused(http.StatusConflict, wire.CodeStopKept, fmt.Sprintf("it is stopped at %s for %s: antipodectl fork show", l.o.Other, far.Stopped))
	}
	cmd := &ranges.Settle{
		Stream: st, From: far.Head, Above: far.Named, Settles: far.Stopped == change.StopSettling.String(), Take: q.Keep == a.Secondary,
	}
	for cmd.Outcome == 0 || cmd.Outcome == ranges.SettleMore {
		if err := stamp.Submit(ctx, st.Range, cmd); err != nil {
			return wire.ForkResolved{}, err
		}
	}
	if cmd.Outcome == ranges.SettleLacks {
		return wire.ForkResolved{}, refused(http.StatusConflict, wire.CodeKeepPrimary, fmt.Sprintf(
			"%s lacks records that it had acknowledged: only the side of the primary can be kept", a.Secondary))
	}
	if cmd.Outcome != ranges.SettleBegun {
		return wire.ForkResolved{}, refused(http.StatusConflict, wire.CodeStopKept, whyNotSettled(cmd.Outcome))
	}
	return wire.ForkResolved{Stream: st.String(), Service: d.Service.String(), Keep: q.Keep, State: change.StopSettling.String()}, nil
}

// rebuildDeletes names the remedy that keeps less.
const rebuildDeletes = "antipodectl account rebuild --force makes the copy again, and moves what only the secondary has to its lost-and-found"

// whyNotCatalog says why a stream of the catalog is not settled. A secondary that lost what it had acknowledged must not
// become the primary: then clients would lose it too.
func whyNotCatalog(a *catalog.Account, stopped string) string {
	if stopped == change.StopLost.String() {
		return fmt.Sprintf("%s lost records of the catalog that it had acknowledged: antipodectl account rebuild %s makes its copy again from %s, which has them",
			a.Secondary, a.Name, a.Primary)
	}
	return "a fork of the catalog may bring deleted containers back: antipodectl failover unplanned keeps what the secondary has; " + rebuildDeletes
}

func whyNotSettled(o ranges.SettleOutcome) string {
	switch o {
	case ranges.SettleNotHere:
		return "the stream is of a former epoch of the account"
	case ranges.SettleNotStopped:
		return "it is not stopped there, or not yet: the other location reports its stop within seconds"
	case ranges.SettleOther:
		return "it is being settled for the primary's side, and what clients have written since is not known: that goes on"
	case ranges.SettleFar:
		return "the secondary has applied numbers far above the primary's: antipodectl failover unplanned keeps what it has; " + rebuildDeletes
	default:
		return "it is neither forked nor lost: antipodectl fork show says what it is stopped for"
	}
}

// stoppedThere returns how far the receiver of a stream is, and why it has stopped it.
func (l *Location) stoppedThere(ctx context.Context, st geo.Stream) (verify.LaneHead, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveWait)
	defer cancel()
	ends, err := verify.Ends(ctx, &verify.Remote{Call: l.far.Verify}, st.Range, st.Account, st.Epoch, false)
	return ends[st.Lane], err
}

// settlement is what is settled at once: streams of an account in a range.
type settlement struct {
	account geo.Account
	epoch   geo.Epoch
	rng     geo.RangeID
}

// settleForks goes on with the settlements of forks that began here, until ctx ends: it compares the lanes, has
// the rows that differ repaired, and ends the settlement of those that are equal.
func (l *Location) settleForks(ctx context.Context, s *stamp.Stamp) {
	tries := settleTries{clock: l.o.Clock, of: map[settlement]*settleTry{}}
	for clock.Wait(ctx, settleEvery) == nil {
		if s.Leader(l.o.Route.Catalog()) == nil {
			continue // The process with the catalog's leader does it.
		}
		for of, stops := range l.settling(ctx, s) {
			if !tries.due(of, stops) {
				continue
			}
			changed, err := l.settle(ctx, s, of, stops)
			if ctx.Err() != nil {
				return
			}
			if tries.ended(of, stops, changed, err) {
				l.o.Logger.Warn("the settlement of a fork waits", "location", l.o.Name, "account", of.account, "range", of.rng, "error", err)
			}
		}
	}
}

// settling returns the stops of the streams that are being settled, by lane.
func (l *Location) settling(ctx context.Context, s *stamp.Stamp) map[settlement]map[geo.Lane]change.Stop {
	out := map[settlement]map[geo.Lane]change.Stop{}
	ctx, cancel := context.WithTimeout(ctx, forksWait)
	defer cancel()
	take := func(st geo.Stream, why change.Stop) {
		if !why.Reason.Settles() || st.Source().Origin != l.o.Name {
			return
		}
		of := settlement{st.Account, st.Epoch, st.Range}
		if out[of] == nil {
			out[of] = map[geo.Lane]change.Stop{}
		}
		out[of][st.Lane] = why
	}
	for _, id := range l.o.Route.IDs() {
		// What a follower has may be old: each step does nothing under another base.
		if r := s.Replica(id); r != nil {
			for st, why := range r.Machine.Stops() {
				take(st, why)
			}
			continue
		}
		p, err := s.Progress(ctx, id, geo.SourceRange{Origin: l.o.Name, Range: id}, cursor.EveryAccount)
		if err != nil {
			continue // It has no leader now.
		}
		for _, stop := range p.Stops {
			take(stop.Stream, stop.Stop)
		}
	}
	return out
}

// settle compares and repairs lanes, and ends the settlement of all of them once they are equal. changed reports whether
// a row was repaired or taken, and does not differ again.
func (l *Location) settle(ctx context.Context, s *stamp.Stamp, of settlement, stops map[geo.Lane]change.Stop) (changed bool, err error) {
	a, err := l.Directory.Account(ctx, of.account)
	if err != nil {
		return false, err
	}
	if a.Primary != l.o.Name || a.GeoEpoch() != of.epoch || !a.MaySettle() {
		return false, errors.New("an operation of the account is under way, and will make its copy again")
	}
	c := l.verifying.lanes(a, of, stops)
	sides := &settlingRows{l: l, stamp: s, of: of, stops: stops, c: c}
	var last verify.Result
	done, err := verify.Repair(ctx, verify.Repairing{
		Comparison: c, Clock: l.o.Clock, Compared: func(r verify.Result) { last = r }, Repaired: func(verify.Repairs) {},
		Rows: sides.settle,
	})
	changed = done.Set+done.Deleted+done.Gone > 0
	if err == nil {
		err = l.endSettlements(ctx, s, of, stops, equalLanes(stops, &last))
	}
	if err != nil {
		return changed, err
	}
	for key, r := range done.Rows {
		if last.Total > 0 && r.Fate == verify.FateNot {
			return changed, fmt.Errorf("row %x: %s", key, r.Reason)
		}
	}
	if last.Total > 0 || last.AtLeast || last.Compared+len(last.Uncompared) != len(stops) {
		return changed, fmt.Errorf("rows differ still: %d", last.Total)
	}
	if len(last.Uncompared) > 0 {
		return changed, fmt.Errorf("lane %d is not compared: %s", last.Uncompared[0].Lane, last.Uncompared[0].Reason)
	}
	return changed, nil
}

// equalLanes returns the lanes that a comparison found equal. Where it does not list each row that differs there are none.
func equalLanes(stops map[geo.Lane]change.Stop, r *verify.Result) (out []geo.Lane) {
	differ := map[geo.Lane]bool{}
	for _, u := range r.Uncompared {
		differ[u.Lane] = true
	}
	whole := !r.AtLeast && r.Total == uint64(len(r.Differences)) && r.Compared+len(r.Uncompared) == len(stops)
	for _, d := range r.Differences {
		p, _, err := keys.ParsePartition(d.Key)
		differ[p.Lane()] = true
		whole = whole && err == nil
	}
	for lane := range stops {
		if whole && !differ[lane] {
			out = append(out, lane)
		}
	}
	return out
}

// endSettlements ends the settlements of lanes that are equal.
func (l *Location) endSettlements(ctx context.Context, s *stamp.Stamp, of settlement, stops map[geo.Lane]change.Stop, equal []geo.Lane) error {
	for _, lane := range equal {
		stop := stops[lane]
		st := geo.Stream{Account: of.account, Epoch: of.epoch, Range: of.rng, Lane: lane}
		end := &ranges.EndSettle{Stream: st, Base: stop.Here}
		if err := s.Submit(ctx, of.rng, end); err != nil {
			return err
		}
		if !end.Ended {
			continue // The stream stopped again, or is settled from another base.
		}
		l.o.Logger.Info("the fork of a stream is settled: both copies are equal", "stream", st)
	}
	return nil
}

// lanes is the comparison of lanes of an account.
func (v *verifying) lanes(a *catalog.Account, of settlement, stops map[geo.Lane]change.Stop) verify.Comparison {
	c := verify.Comparison{
		Account: a.Name, Epoch: of.epoch, Range: of.rng, Near: v.near, Far: &verify.Remote{Call: v.l.far.Verify}, Payload: verify.PayloadPresent,
		Prefixes: func(ctx context.Context) ([][]byte, error) {
			d, _ := v.l.o.Route.Range(of.rng) // settling took it from the table of ranges.
			return v.prefixes(ctx, a.Name, d.Service, "")
		},
	}
	for lane := range stops {
		c.Lanes = append(c.Lanes, lane)
	}
	slices.Sort(c.Lanes)
	return c
}
