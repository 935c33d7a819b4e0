package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// A copy that is about to be deleted may have what its primary does not (R17): the primary was set back, or recovered with
// loss, or the copy is that of a former primary which has diverged. Before the secondary deletes it, it compares with the
// primary and keeps the rows in which they differ in its lost-and-found, with their payload:
//
//	compared: which lanes of which range may have such rows
//	  ──one span of keys after the other: a page of the primary's rows, a group that keeps──>
//	kept ──the account's record and the catalog's gate of the new epoch, then the wipes──> deleted
//
// Why nothing is missed. A copy has a row that the primary does not have only by a record that the primary does not have: its
// lane is stopped as forked, or its cursor is above the primary's head of that epoch, or another record, or the rows were not
// received in that epoch. A lane of a copy that is merely behind has only rows that the primary had, and replaced. The
// primary numbers nothing in the former epoch any more, so that its heads stand, and what the copy still takes in comes from
// the primary. A container that the primary does not have is kept whole: rows of it that are still at the primary are of no
// container there, and are swept.
//
// Where the steps stand is in memory: after a crash they begin again, and a row that is kept stays as it is. Nothing is
// deleted before all of them are done. From then on the gate of the catalog is of the new epoch: with that nothing is kept, nor
// anything of another range once it has that gate.

// salvageSteps is how many commands one call of Prepare commits: callers have other accounts, and bound their calls.
const salvageSteps = 64

// Salvaged is what a copy has that its primary does not, or has otherwise.
type Salvaged struct {
	// Rows, with Bytes of keys and values, and Payload bytes that they name.
	Rows, Bytes, Payload uint64
	// Lanes is how many streams it may have such rows in, and Newest the commit time of the last record that was applied
	// in one of them, zero if it has none.
	Lanes  int
	Newest geo.Timestamp
}

// salvages are those under way at this location.
type salvages struct {
	mu sync.Mutex
	of map[geo.Account]*salvage
}

// salvage is one under way.
type salvage struct {
	// mu is held by the call that goes on with it.
	mu      sync.Mutex
	account geo.Account
	// by is the epoch for which the copy is deleted; zero counts.
	by     geo.Epoch
	loaded bool
	spans  []salvageSpan
	out    Salvaged
}

// salvageSpan is a span of keys that is left to do.
type salvageSpan struct {
	in    geo.RangeID
	lanes verify.Lanes
	// start moves on; end stays.
	start, end []byte
	// whole: the primary has none of it.
	whole bool
}

// SetFarRows sets how this location asks for rows of the other one. Without it nothing is kept of a copy that is deleted.
func (cp *Copier) SetFarRows(p verify.Peer) { cp.farRows = p }

// CountSalvage counts what the copy of an account at this location has that its primary does not, or has otherwise: what a
// rebuild, or a change to LRS, would keep in the lost-and-found here. Errors: AccountNotFound; InvalidInput where this
// location has no copy; those of the call to the primary. At the end of ctx it returns what was counted so far, with its error.
func (cp *Copier) CountSalvage(ctx context.Context, name geo.Account) (Salvaged, error) {
	a, err := cp.accounts.Account(ctx, name)
	switch {
	case err != nil:
		return Salvaged{}, err
	case a.Secondary != cp.stamp.Location():
		return Salvaged{}, storageerr.InvalidInput.Saying(fmt.Sprintf("%s has no copy of account %s", cp.stamp.Location(), name))
	case cp.farRows == nil:
		return Salvaged{}, errors.New("directory: the other location cannot be asked for rows")
	}
	s := &salvage{account: name}
	for done := false; !done && err == nil; {
		done, err = cp.goOn(ctx, s)
	}
	return s.out, err
}

// KeepCopy keeps what the copy here of an account of the other location has that the account's primary does not, before it is
// deleted for the epoch of a. It is ServerBusy, with how far it is, until all of it is kept.
func (cp *Copier) KeepCopy(ctx context.Context, a catalog.Account) error {
	if cp.farRows == nil {
		return nil
	}
	s := cp.salvaging(a.Name, a.GeoEpoch())
	busy := func() error {
		return storageerr.ServerBusy.Saying(fmt.Sprintf("%s keeps what only its copy of account %s has: %d rows are in its lost-and-found so far",
			cp.stamp.Location(), a.Name, s.out.Rows))
	}
	if !s.mu.TryLock() {
		return storageerr.ServerBusy.Saying(fmt.Sprintf("%s keeps what only its copy of account %s has", cp.stamp.Location(), a.Name))
	}
	defer s.mu.Unlock()
	switch done, err := cp.goOn(ctx, s); {
	case err != nil:
		return fmt.Errorf("what only the copy of account %s has: %w", a.Name, err)
	case !done:
		return busy()
	}
	cp.salvages.mu.Lock()
	defer cp.salvages.mu.Unlock()
	delete(cp.salvages.of, a.Name)
	return nil
}

// salvaging returns the salvage of a copy that is under way, or begins one.
func (cp *Copier) salvaging(a geo.Account, by geo.Epoch) *salvage {
	cp.salvages.mu.Lock()
	defer cp.salvages.mu.Unlock()
	if s := cp.salvages.of[a]; s != nil && s.by == by {
		return s
	}
	if cp.salvages.of == nil {
		cp.salvages.of = map[geo.Account]*salvage{}
	}
	s := &salvage{account: a, by: by}
	cp.salvages.of[a] = s
	return s
}

// goOn goes on with a salvage for a while.
func (cp *Copier) goOn(ctx context.Context, s *salvage) (done bool, err error) {
	if !s.loaded {
		if err := cp.compareCopy(ctx, s); err != nil {
			return false, err
		}
		s.loaded = true
	}
	for range salvageSteps {
		if len(s.spans) == 0 {
			return true, nil
		}
		if err := cp.salvageSpan(ctx, s); err != nil {
			return false, err
		}
	}
	return len(s.spans) == 0, nil
}

// compareCopy finds the spans of a salvage.
func (cp *Copier) compareCopy(ctx context.Context, s *salvage) error {
	s.spans, s.out = nil, Salvaged{}
	lanes, none := map[geo.RangeID]verify.Lanes{}, true
	for _, r := range cp.stamp.Route().Everywhere(s.account) { // The catalog is the first.
		of, begun, err := cp.lanesOfCopy(ctx, r, s)
		if err != nil {
			return fmt.Errorf("the %s range: %w", r.Service, err)
		}
		if begun && r.Service == geo.Catalog {
			return nil // All was kept before.
		}
		lanes[r.ID], none = of, none && of == 0
		s.out.Lanes += of.Count()
	}
	if none {
		return nil
	}
	id := cp.stamp.Route().Catalog()
	for _, service := range geo.Services {
		prefix := catalog.ContainersPrefix(service, s.account)
		if lanes[id] != 0 {
			s.spans = append(s.spans, salvageSpan{in: id, lanes: lanes[id], start: prefix, end: keys.PrefixEnd(prefix)})
		}
		if err := cp.spansOf(ctx, s, service, lanes); err != nil {
			return fmt.Errorf("the containers: %w", err)
		}
	}
	return nil
}

// lanesOfCopy returns the lanes of a range in which the copy may have what the primary does not. The cursors are read
// before the heads, which do not go back but by a loss at the primary.
// begun reports that the range has left the epoch of the copy.
func (cp *Copier) lanesOfCopy(ctx context.Context, r route.Range, s *salvage) (out verify.Lanes, begun bool, err error) {
	cmd := &salvageRows{salvageBody: salvageBody{Account: s.account, By: s.by}}
	if err := cp.stamp.Submit(ctx, r.ID, cmd); err != nil || cmd.out.Gone || cmd.out.Was == (geo.Epoch{}) {
		return 0, cmd.out.Gone, err
	}
	heads, err := verify.Ends(ctx, cp.farRows, r.ID, s.account, cmd.out.Was, true)
	if err != nil {
		return 0, false, err
	}
	out = cmd.out.Stopped
	if cmd.out.Whole {
		out = verify.AllLanes
	}
	for lane, head := range heads {
		if head.Stopped != "" && head.Stopped != change.StopBudget.String() {
			out = out.With(geo.Lane(lane))
		}
	}
	for _, at := range cmd.out.At {
		if head := heads[at.Lane].Head; at.Head.Seq > head.Seq || at.Head.Seq == head.Seq && at.Head != head {
			out = out.With(at.Lane)
		}
		if out.Has(at.Lane) {
			s.out.Newest = max(s.out.Newest, at.Time)
		}
	}
	return out, false, nil
}

// spansOf adds the spans of the containers of a service that live in the catalog here.
func (cp *Copier) spansOf(ctx context.Context, s *salvage, service geo.Service, lanes map[geo.RangeID]verify.Lanes) error {
	forked := lanes[cp.stamp.Route().Catalog()]
	there := map[string]bool{}
	if forked != 0 {
		var err error
		if there, err = cp.containersThere(ctx, s.account, service); err != nil {
			return err
		}
	}
	snap, err := ranges.Snapshot(ctx, cp.stamp, cp.stamp.Route().Catalog())
	if err != nil {
		return err
	}
	err = keys.Each(snap, catalog.ContainersPrefix(service, s.account), func(key, value []byte) error {
		prefix, err := livingContainer(key, value, service, s.account)
		if err != nil || prefix == nil {
			return err
		}
		p, _, err := keys.ParsePartition(key)
		if err != nil {
			return err
		}
		whole := forked.Has(p.Lane()) && !there[string(prefix)]
		for _, r := range cp.stamp.Route().Account(service, s.account) {
			of := lanes[r.ID]
			if whole {
				of = verify.AllLanes
			}
			if in := (geo.Span{Start: string(prefix), End: string(keys.PrefixEnd(prefix))}).Within(r.Span); of != 0 && in.Start < in.End {
				s.spans = append(s.spans, salvageSpan{in: r.ID, lanes: of, start: []byte(in.Start), end: []byte(in.End), whole: whole})
			}
		}
		return nil
	})
	return errors.Join(err, snap.Close())
}

// livingContainer returns the prefix of the rows of a container, nil if it is deleted or the row is none of a container.
func livingContainer(key, value []byte, service geo.Service, a geo.Account) ([]byte, error) {
	if bytes.Equal(key, catalog.PropertiesKey(service, a)) {
		return nil, nil
	}
	c, err := catalog.ParseContainer(value)
	if err != nil || c.Deleted != 0 {
		return nil, err
	}
	return c.Prefix(service, a), nil
}

// containersThere returns the prefixes of the rows of the containers of a service that live at the primary.
func (cp *Copier) containersThere(ctx context.Context, a geo.Account, service geo.Service) (map[string]bool, error) {
	out := map[string]bool{}
	prefix := catalog.ContainersPrefix(service, a)
	p := verify.Page{Account: a, Range: cp.stamp.Route().Catalog(), Lanes: verify.AllLanes, Start: prefix, End: keys.PrefixEnd(prefix), Values: true}
	for p.Start != nil {
		rows, _, next, err := verify.Rows(ctx, cp.farRows, p)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			of, err := livingContainer(r.Key, r.Value, service, a)
			if err != nil {
				return nil, err
			}
			if of != nil {
				out[string(of)] = true
			}
		}
		p.Start = next
	}
	return out, nil
}

// salvageSpan does a step of the first span of a salvage.
func (cp *Copier) salvageSpan(ctx context.Context, s *salvage) error {
	span := &s.spans[0]
	body := salvageBody{Account: s.account, By: s.by, Start: span.start, End: span.end, Lanes: span.lanes}
	var next []byte
	if !span.whole {
		var err error
		_, body.There, next, err = verify.Rows(ctx, cp.farRows, verify.Page{
			Account: s.account, Range: span.in, Lanes: span.lanes, Start: span.start, End: span.end,
		})
		if err != nil {
			return fmt.Errorf("read the rows of the primary: %w", err)
		}
		if next != nil {
			body.End = next
		}
	}
	for {
		cmd := &salvageRows{salvageBody: body}
		if err := cp.stamp.Submit(ctx, span.in, cmd); err != nil {
			return err // It may be evaluated yet; then it keeps the same rows.
		}
		s.out.Rows += cmd.out.Rows
		s.out.Bytes += cmd.out.Bytes
		s.out.Payload += cmd.out.Payload
		if cmd.out.Next == nil {
			break
		}
		body.Start = cmd.out.Next
		span.start = slices.Clone(cmd.out.Next)
	}
	if span.start = next; next == nil {
		s.spans = s.spans[1:]
	}
	return nil
}
