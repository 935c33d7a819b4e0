package unplanned

import (
	"context"
	"fmt"
	"strings"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/route"
)

// A copy of which a recovery with loss left a part (R4). Such a range of the secondary may be as it was while the copy was
// made, and rows that are not in it then are below every closed time: its cursors do not show that they are missing. Until
// all is here again that the copy was made of, the account is not promoted, unless an operator insists.

// Insisted is what an operator takes upon himself for an unplanned failover.
type Insisted struct {
	// WithoutWitness: the present primary takes no writes, so the witness is not asked (R21).
	WithoutWitness bool
	// AcceptPart: what a recovery with loss has left of the copy is enough (R4).
	AcceptPart bool
}

// Part is a service of which the copy may have a part only.
type Part struct {
	Service geo.Service
	// has is up to when the copy has everything that arrived since it was made; zero if that is not known.
	Has geo.Timestamp
}

// PartsOf returns the services of which the copy of an account may have a part only, by where it ends in the streams of all
// ranges. What counts is as for the Last Sync Time of a service (R13): its ranges, and the catalog.
func PartsOf(a *catalog.Account, from *route.Table, forks []catalog.Fork) (out []Part) {
	if a.Copied <= a.LastFailover {
		return nil // No copy was made since the location had everything.
	}
	at := func(s geo.Service) (has geo.Timestamp, recovered bool) {
		has = ^geo.Timestamp(0)
		for _, f := range forks {
			if r, known := from.Range(f.Range); known && r.Service != s && r.Service != geo.Catalog {
				continue
			}
			has, recovered = min(has, f.Closed), recovered || f.Recovered
			for _, st := range f.Streams {
				if st.Behind != 0 {
					has = min(has, st.Sync)
				}
			}
		}
		return has, recovered
	}
	for _, s := range geo.Services {
		if has, recovered := at(s); recovered && has < a.Copied {
			out = append(out, Part{s, has})
		}
	}
	return out
}

// partial is why a copy of which some services have a part only is not promoted, empty if there is none.
func partial(a *catalog.Account, here geo.Location, parts []Part) string {
	if len(parts) == 0 {
		return ""
	}
	var of []string
	for _, p := range parts {
		has := "the primary has not been in contact since"
		if p.Has != 0 {
			has = "of the changes since it has those up to " + p.Has.String()
		}
		of = append(of, fmt.Sprintf("%s (%s)", p.Service, has))
	}
	return fmt.Sprintf(
		"a range at %s was recovered with a loss, and what the copy of account %s was made of, up to %s, is not all there again: %s. Wait until it is, or accept the part (--accept-part)",
		here, a.Name, a.Copied, strings.Join(of, ", "))
}

// checkPart refuses the promotion of a part of a copy, as far as the ranges answer now. What does not answer is left to the
// promotion, which checks again where the copy is frozen.
func (u *Promoter) checkPart(ctx context.Context, name geo.Account) error {
	a, err := u.accounts.Account(ctx, name)
	if err != nil || a.Copied <= a.LastFailover || a.Secondary != u.stamp.Location() {
		return nil //nolint:nilerr // The command that begins the promotion finds what is wrong.
	}
	ctx, cancel := u.within(ctx, record.OperationWait)
	defer cancel()
	why, err := u.PartOf(ctx, a)
	if err != nil {
		return nil //nolint:nilerr // See above.
	}
	return why
}

// PartOf returns why the copy of an account here is not promoted, if it may be a part only. err: the ranges do not answer.
func (u *Promoter) PartOf(ctx context.Context, a *catalog.Account) (why, err error) {
	forks, err := u.frozen(ctx, a.Name, a.GeoEpoch(), 0)
	if err != nil {
		return nil, err
	}
	if s := partial(a, u.stamp.Location(), PartsOf(a, u.stamp.Route(), forks)); s != "" {
		why = storageerr.InvalidInput.Saying(s)
	}
	return why, nil
}

// Check returns why PromoteAs would refuse to begin, nil if it would not. It changes nothing.
func (u *Promoter) Check(ctx context.Context, name geo.Account, by Insisted) error {
	cmd := u.newPromotion(name, by)
	cmd.dry = true
	err := u.stamp.Commit(ctx, cmd)
	if err == nil && !by.AcceptPart {
		err = u.checkPart(ctx, name)
	}
	return err
}
