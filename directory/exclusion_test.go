package directory_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/planned"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// R19, R20: the operation of an account is its lock. While one is under way, each other one is refused, and with which code:
// StorageAccountOperationInProgress where that excludes it, InvalidInput where the account is not one that it is of. What goes on beside
// another one, or ends it, is empty here. An account cannot be deleted. What a promotion at the secondary excludes is
// TestR20PromotionExcludesThePrimary.
//
// Capability: Failover: What the public management API shows of an account's geo-replication.
func TestR19OperationsExcludeEachOther(t *testing.T) {
	t.Parallel()
	busy, invalid, goes := storageerr.OperationInProgress.Code, storageerr.InvalidInput.Code, ""
	move := func(phase catalog.MovePhase) *catalog.Operation {
		return &catalog.Operation{Kind: catalog.OperationMove, Move: catalog.Move{Phase: phase, Until: 1 << 62, Claim: 9}}
	}
	// The verbs: a change to LRS and to GRS, a rebuild, the policy for late changes, a planned and an unplanned failover.
	verbs := []string{"LRS", "GRS", "rebuild", "late", "planned", "unplanned"}
	b := newBoth(t)
	b.north.NeverWait()
	for n, c := range []struct {
		state string
		op    *catalog.Operation
		lrs   bool
		want  []string
	}{
		{"nothing", nil, false, []string{goes, goes, goes, goes, goes, goes}},
		{"LRS", nil, true, []string{goes, goes, invalid, invalid, invalid, invalid}},
		{"announce", &catalog.Operation{Kind: catalog.OperationAnnounce}, true, []string{goes, busy, invalid, invalid, busy, invalid}},
		{"leave", &catalog.Operation{Kind: catalog.OperationLeave}, true, []string{goes, busy, invalid, invalid, busy, invalid}},
		// A change to LRS and a rebuild end a bootstrap.
		{"bootstrap", &catalog.Operation{Kind: catalog.OperationBootstrap, Copying: true}, false, []string{goes, busy, goes, goes, busy, busy}},
		// A copy that was whole may become the primary: the primary that makes it again may be gone.
		{
			"bootstrap of a whole copy", &catalog.Operation{Kind: catalog.OperationBootstrap, Copying: true, Whole: true}, false,
			[]string{goes, busy, goes, goes, busy, goes},
		},
		// An unplanned failover asks the primary nothing, so what that has begun does not keep it.
		{"draining", move(catalog.MoveDraining), false, []string{busy, busy, busy, busy, busy, goes}},
		{"closing", move(catalog.MoveClosing), false, []string{busy, busy, busy, busy, busy, goes}},
		{"offered", move(catalog.MoveOffered), false, []string{busy, busy, busy, busy, busy, goes}},
		{"ending", move(catalog.MoveEnding), false, []string{busy, busy, busy, busy, busy, goes}},
		{"taken", &catalog.Operation{Kind: catalog.OperationTaken}, false, []string{busy, busy, busy, busy, busy, goes}},
		// The copy is made again where the former primary has diverged: that ends the failover.
		{"diverged", &catalog.Operation{Kind: catalog.OperationTaken, Unplanned: true, Diverged: true}, false, []string{busy, busy, goes, busy, busy, goes}},
	} {
		t.Run(c.state, func(t *testing.T) {
			for i, verb := range verbs {
				name := geo.Account(fmt.Sprintf("state%dverb%d", n, i))
				b.cut = false
				as := catalog.RAGRS
				if c.lrs {
					as = catalog.LRS
				}
				made, err := b.north.CreateAs(t.Context(), directory.Wanted{Name: name, Redundancy: as})
				require.NoError(t, err)
				row := *made
				row.Operation = c.op
				b.store(t, row)
				b.cut = true // What is begun does not go on.
				code := b.begin(t, verb, name)
				require.Equal(t, c.want[i], code, "%s while %s", verb, c.state)
			}
		})
	}
}

// store has both locations have the record of an account.
func (b *both) store(t *testing.T, row catalog.Account) {
	t.Helper()
	v, err := row.Encode()
	require.NoError(t, err)
	part := catalog.AccountPartition(row.Name)
	for _, s := range b.stamps {
		stamptest.Submit(t, s, geo.FirstRange(geo.Catalog), does(func(tx *ranges.Tx) error {
			return tx.Local(part, change.Record{CommitTime: tx.Timestamp(0), Partition: part.Append(nil), Ops: []change.Op{{Value: v}}})
		}))
	}
}

// begin begins an operation, and returns the code with which it is refused, empty if it began.
func (b *both) begin(t *testing.T, verb string, name geo.Account) string {
	var err error
	switch verb {
	case "LRS":
		_, _, err = b.north.Update(t.Context(), name, catalog.LRS, nil)
	case "GRS":
		_, _, err = b.north.Update(t.Context(), name, catalog.GRS, nil)
	case "rebuild":
		_, _, err = b.north.Rebuild(t.Context(), name, nil)
	case "late":
		_, _, err = b.north.SetWhenLate(t.Context(), name, catalog.LateRefuse)
	case "planned": // It begins where the other location answers only.
		b.cut = false
		_, err = b.north.Mover().Move(t.Context(), name, planned.MoveWithin)
	case "unplanned":
		_, err = b.south.Promoter().Promote(t.Context(), name)
	}
	if err == nil {
		return ""
	}
	row, ok := storageerr.Of(err)
	require.True(t, ok, "%v", err)
	return row.Code
}
