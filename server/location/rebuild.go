package location

import (
	"context"
	"fmt"
	"slices"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
)

const (
	// rebuildWait bounds how long a rebuild waits to learn whether the secondary is ahead.
	rebuildWait = 5 * time.Second
	// aloneWait bounds a count of what only a copy has; what is counted by then is shown.
	aloneWait = 20 * time.Second
)

// CopyAlone counts what the copy of an account at this location has and its primary does not, or has otherwise. The
// catalog's leader must be in this process.
func (l *Location) CopyAlone(ctx context.Context, name geo.Account) (wire.CopyAlone, error) {
	if _, err := l.Stamp(); err != nil {
		return wire.CopyAlone{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, aloneWait)
	defer cancel()
	found, err := l.Directory.Copier().CountSalvage(ctx, name)
	if _, ours := storageerr.Of(err); ours && ctx.Err() == nil {
		return wire.CopyAlone{}, err
	}
	out := wire.CopyAlone{
		Account: name, Location: l.o.Name, Rows: found.Rows, Bytes: found.Bytes, PayloadBytes: found.Payload, Streams: found.Lanes,
	}
	if found.Newest != 0 {
		out.Newest = wire.Time{Time: found.Newest.Time()}
	}
	if out.AtLeast = err != nil; out.AtLeast {
		out.Reason = err.Error()
	}
	return out, nil
}

// rebuild begins the copy of an account again, unless that is refused.
func (l *Location) rebuild(ctx context.Context, name geo.Account, u wire.UpdateAccount) (a *catalog.Account, behind, err error) {
	if u.Force == "" {
		if err := l.CheckRebuild(ctx, name); err != nil {
			return nil, nil, err
		}
	}
	if u.DryRun {
		a, err = l.Directory.Account(ctx, name)
		return a, nil, err
	}
	return l.Directory.Rebuild(ctx, name, u.BytesPerSecond)
}

// checkUpdate refuses fields of a change that belong to a rebuild alone.
func checkUpdate(name geo.Account, u wire.UpdateAccount) error {
	switch {
	case u.Force != "" && u.Force != name:
		return storageerr.InvalidInput.Saying(fmt.Sprintf("force names the account whose copy is deleted: %s, not %s", name, u.Force))
	case !u.Rebuild && (u.Force != "" || u.DryRun):
		return storageerr.InvalidInput.Saying("force and dry_run are of a rebuild")
	}
	return nil
}

// CheckRebuild refuses to delete the copy of an account for a rebuild while the secondary is ahead of the primary, or
// cannot be asked (R17). A record that the primary does not have may be the only copy of an acknowledged write.
func (l *Location) CheckRebuild(ctx context.Context, name geo.Account) error {
	a, err := l.Directory.Account(ctx, name)
	switch {
	case err != nil:
		return err
	case a.Primary != l.o.Name || a.Secondary == "" || a.Operation != nil && (a.Operation.Diverged || a.Operation.Rewinding):
		return nil // What the directory answers is better; or the copy is no receiver's: its location reported what it has alone.
	}
	ctx, cancel := context.WithTimeout(ctx, rebuildWait)
	defer cancel()
	var found aheadStreams
	for _, d := range l.o.Route.Everywhere(name) {
		// The cursors first: the heads that are read then are not below, unless the primary lost them.
		far, err := verify.Ends(ctx, &verify.Remote{Call: l.far.Verify}, d.ID, name, a.GeoEpoch(), false)
		if err != nil {
			return refusal(wire.CodeOtherAway, fmt.Sprintf("could not rebuild account %s: whether %s has what %s lacks is not known, since it does not answer (%v): "+
				"try again once it does, or delete what it has: %s", name, a.Secondary, l.o.Name, err, forcedRebuild(name)))
		}
		near, err := verify.Ends(ctx, l.verifying.near, d.ID, name, a.GeoEpoch(), true)
		if err != nil {
			return err
		}
		for lane := range far {
			found.add(d.Service, near[lane], far[lane])
		}
	}
	if found.streams == 0 {
		return nil
	}
	return refusal(wire.CodeSecondaryAhead, fmt.Sprintf("could not rebuild account %s: its copy at %s has records in %d streams that %s does not have, "+
		"which may be the only copy of acknowledged writes: %s; %s", name, a.Secondary, found.streams, l.o.Name, found.keepsMost(a), forcedRebuild(name)))
}

// aheadStreams counts the streams of which the secondary has what the primary does not. ofCatalog: one of them is of the
// catalog; settling are those whose fork is being settled.
type aheadStreams struct {
	streams, settling int
	ofCatalog         bool
}

func (f *aheadStreams) add(svc geo.Service, head, at verify.LaneHead) {
	settling := slices.Contains([]string{head.Stopped, at.Stopped}, change.StopSettling.String())
	if !settling && !aheadAt(head, at) {
		return
	}
	if f.streams++; settling {
		f.settling++
	}
	f.ofCatalog = f.ofCatalog || svc == geo.Catalog
}

// keepsMost is what to do about them, which keeps most.
func (f *aheadStreams) keepsMost(a *catalog.Account) string {
	switch {
	case f.ofCatalog:
		return fmt.Sprintf("antipodectl failover unplanned %s makes %s the primary, with all that it has", a.Name, a.Secondary)
	case f.settling == f.streams:
		return "they are being settled, which goes on alone (antipodectl fork list): try again once it has ended"
	}
	return fmt.Sprintf("antipodectl fork resolve %s --keep %s takes them back", a.Name, a.Secondary)
}

// forcedRebuild is the command that keeps less.
func forcedRebuild(name geo.Account) string {
	return fmt.Sprintf("antipodectl account rebuild %s --force %s moves what only it has to its lost-and-found", name, name)
}

// aheadAt reports whether a lane of the secondary has what the primary does not.
func aheadAt(head, at verify.LaneHead) bool {
	forked := slices.Contains([]string{head.Stopped, at.Stopped}, change.StopForked.String())
	return forked || at.Head.Seq > head.Head.Seq || at.Head.Seq == head.Head.Seq && at.Head != head.Head
}
