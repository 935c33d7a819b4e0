package redundancy

import (
	"context"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
)

// lostChanges reads the lost-change report of the account at a location (R22), whole.
func (a *account) lostChanges(ctx context.Context, at geo.Location) (claims []wire.LostClaim, changes []wire.LostChange) {
	a.t.Helper()
	a.eventually(ctx, "the lost changes", func(ctx context.Context) bool {
		claims, changes = nil, nil
		for q := (wire.LostQuery{Account: a.name}); ; {
			page, err := a.r.Admin(rig.NodesOf(at)[0]).Lost(ctx, at, q)
			if err != nil {
				return false
			}
			claims, changes = append(claims, page.Claims...), append(changes, page.Changes...)
			if !page.More {
				return true
			}
			q.After = changes[len(changes)-1].Key
		}
	})
	return claims, changes
}

// reported compares the lost-change report of a former primary with what the clients know (R22): every acknowledged write
// of the ledger that is gone is in it, under its commit time; nothing in it can be read at the new primary, or was refused;
// and it claims to be complete. One whose disks are older ones may say instead since when it is not: before any write that
// is gone and not in it.
func (a *account) reported(ctx context.Context, former geo.Location, prefix string, found ledger.Found, older bool) (out lostReport) {
	a.t.Helper()
	claims, changes := a.lostChanges(ctx, former)
	if len(found.Lost) > 0 {
		require.NotEmpty(a.t, claims)
	}
	for _, c := range claims {
		require.True(a.t, c.Complete || older, "%+v", c)
		if !c.Complete {
			out.incomplete = append(out.incomplete, c)
		}
	}
	type key struct{ service, name string }
	listed := map[key]wire.LostChange{}
	for _, c := range changes {
		require.Empty(a.t, c.Unreadable)
		if c.Container == ledger.Name && strings.HasPrefix(c.Object, prefix) {
			listed[key{c.Service, c.Object}] = c
			if out.listed++; c.Answered == wire.AnsweredPerhaps {
				out.perhaps++
			}
		}
	}
	for _, e := range found.Lost {
		c, ok := listed[key{e.Service.String(), e.Key}]
		if !ok && out.leavesOpen(e) {
			continue
		}
		require.True(a.t, ok, "acknowledged, gone, and not in the report: %s; it is incomplete in %+v", e, out.incomplete)
		require.True(a.t, c.Committed.Equal(e.At.Time()), "%s: reported as committed at %s", e, c.Committed)
		delete(listed, key{e.Service.String(), e.Key})
	}
	for _, e := range found.Absent {
		delete(listed, key{e.Service.String(), e.Key})
	}
	require.Empty(a.t, listed, "reported as lost, and neither acknowledged nor open, or not gone")
	return out
}

// lostReport is what a report has of a ledger: how many changes, how many of them were perhaps answered, and which ranges
// may have lost others.
type lostReport struct {
	listed, perhaps int
	incomplete      []wire.LostClaim
}

// leavesOpen reports whether the report may lack a write, by what it claims.
func (r lostReport) leavesOpen(e ledger.Entry) bool {
	return slices.ContainsFunc(r.incomplete, func(c wire.LostClaim) bool {
		return c.Service == e.Service.String() && c.IncompleteSince.Before(e.At.Time())
	})
}
