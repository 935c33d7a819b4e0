package rejoin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/directory/record/recordtest"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// regained is a former primary, of which the range of tables has kept its lost changes.
type regained struct {
	*recordtest.Containers
	t *testing.T
}

func newRegained(t *testing.T) regained {
	r := regained{recordtest.New(t, geo.Table), t}
	r.Gates(change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true})
	p := r.Create("t")
	r.Drop("t")
	stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Table), recordtest.Does(func(tx *ranges.Tx) error {
		tx.CloseGeneration(keys.ClosedGeneration(tx.Range(), p.Service, p.Account, p.Container, p.Generation))
		return nil
	}))
	return r
}

// follows sets the gates of the present primary's epoch, and has the range claim that it has kept all.
func (r regained) follows(g change.Gate) {
	r.t.Helper()
	g.Epoch, g.Role = geo.Epoch{Number: 2, Location: "south"}, change.RoleSecondary
	r.Gates(g)
	stamptest.Submit(r.t, r.Stamp, geo.FirstRange(geo.Table), recordtest.Does(func(tx *ranges.Tx) error {
		return stageClaim(tx, tx.Timestamp(0), "acct", change.LostClaim{Number: 2, Location: "south"})
	}))
}

// submit submits a regain as a node that does not lead the range does.
func (r regained) submit(body regainBody) (*regain, error) {
	r.t.Helper()
	gate := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "south"}, Role: change.RoleSecondary, Open: true}
	sent := &regain{regainBody: body, rejoin: rejoin{SetGate: record.SetGate{Account: "acct", Gate: gate}}}
	there, err := parseRegain(sent.Encode())
	require.NoError(r.t, err)
	if err := r.Submit(r.t.Context(), geo.FirstRange(geo.Table), there); err != nil {
		return sent, err
	}
	require.NoError(r.t, sent.DecodeResult(there.EncodeResult()))
	return sent, nil
}

func (r regained) gate() change.Gate { return r.Leader(geo.FirstRange(geo.Table)).Machine.Gate("acct") }

// R22: a range opens its gate with what it needs in its claim, and has closed no generation from then on. More generations
// than are sent whole are a divergence: the gate stays closed, and the copy has to be made again. A frozen gate is left
// alone.
//
// Capability: Failover: Lost changes of containers and tables are rewound, too (R22).
func TestR22RegainIsBounded(t *testing.T) {
	t.Parallel()
	r := newRegained(t)
	p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t"}
	found, err := catalog.Lookup(r.Leader(geo.FirstRange(geo.Catalog)).State(), p.Service, p.Account, p.Container)
	require.NoError(t, err)
	p.Generation = found.Generation()
	r.follows(change.Gate{Turn: 1})
	_, err = r.submit(regainBody{Open: true})
	require.ErrorIs(t, err, kv.ErrBusy)

	r.follows(change.Gate{Turn: 2})
	var many []change.LostContainer
	for i := range sweptMax + 1 {
		many = append(many, change.LostContainer{Name: fmt.Sprint("t", i), Epoch: 1, Created: 1})
	}
	c, err := r.submit(regainBody{Open: true, Swept: many})
	require.NoError(t, err)
	require.ErrorIs(t, c.outcome(), ErrDiverged)
	require.False(t, c.open)
	require.False(t, r.gate().Open)
	require.True(t, r.Closed(p))

	c, err = r.submit(regainBody{})
	require.NoError(t, err)
	require.NoError(t, c.outcome())
	require.False(t, c.open)
	require.False(t, r.gate().Open, "it was asked whether it is")
	c, err = r.submit(regainBody{Open: true, Swept: many[1:]})
	require.NoError(t, err)
	require.NoError(t, c.outcome())
	require.True(t, r.gate().Open)
	require.False(t, r.Closed(p))
	claim, err := catalog.LostClaim(r.Leader(geo.FirstRange(geo.Table)).State(), geo.Table, "acct", r.gate().Epoch)
	require.NoError(t, err)
	require.Equal(t, many[1:], claim.Swept)

	q := p
	q.Object = "p"
	require.True(t, r.Has(q))
	c, err = r.submit(regainBody{Wipe: [][]byte{record.ContainerPrefix(p)}}) // One that is late.
	require.NoError(t, err)
	require.NoError(t, c.outcome())
	require.True(t, c.open)
	require.True(t, r.Has(q), "nothing is deleted behind an open gate")
}

// R22: a catalog that has gone on to another epoch says nothing of the generations that a rewind has to delete: a rebuild has
// deleted its copy of the containers. Nothing is deleted, and the gate stays closed.
//
// Capability: Failover: Lost changes of containers and tables are rewound, too (R22).
func TestR22RegainReadsTheCatalogOfItsEpoch(t *testing.T) {
	t.Parallel()
	for number, fails := range map[geo.EpochNumber]error{2: nil, 3: kv.ErrBusy} {
		r := newRegained(t)
		lives := r.Create("lives")
		r.follows(change.Gate{})
		now := change.Gate{Epoch: geo.Epoch{Number: number, Location: "south"}, Role: change.RoleSecondary}
		stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Catalog), stamptest.Gate{Account: "acct", Gate: now})
		of := catalog.Account{Name: "acct", Redundancy: catalog.RAGRS, Epoch: 2, Primary: "south", Secondary: "north"}
		err := (&Rejoiner{stamp: &record.Store{Stamp: r}}).regain(t.Context(), of, route.Range{ID: geo.FirstRange(geo.Table), Service: geo.Table})
		require.ErrorIs(t, err, fails)
		require.Equal(t, fails == nil, r.gate().Open)
		require.True(t, r.Has(lives))
	}
}

// R22: a gate that a node of a former version has opened, which compares no generations, is a divergence, whenever that was:
// also after the catalog was rewound. So is one of a range that has claimed nothing.
func TestR22GateOpenedByAFormerVersionDiverges(t *testing.T) {
	t.Parallel()
	for _, claims := range []bool{true, false} {
		r := newRegained(t)
		if claims {
			r.follows(change.Gate{})
			former := &rejoin{SetGate: record.SetGate{Account: "acct", Gate: change.Gate{
				Epoch: geo.Epoch{Number: 2, Location: "south"}, Role: change.RoleSecondary, Open: true,
			}}}
			stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Table), former)
			require.NoError(t, former.outcome())
		} else {
			r.Gates(change.Gate{Epoch: geo.Epoch{Number: 2, Location: "south"}, Role: change.RoleSecondary, Open: true})
		}
		require.True(t, r.gate().Open)
		for _, body := range []regainBody{{}, {Open: true}} {
			c, err := r.submit(body)
			require.NoError(t, err)
			require.False(t, c.open)
			require.ErrorIs(t, c.outcome(), ErrDiverged, "claims: %t", claims)
		}
	}
}
