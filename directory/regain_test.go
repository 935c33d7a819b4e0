package directory

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

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
type regained struct{ *swept }

func newRegained(t *testing.T) regained {
	r := regained{newSwept(t, change.RolePrimary)}
	p := r.create("t")
	r.drop("t")
	stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Table), does(func(tx *ranges.Tx) error {
		tx.CloseGeneration(keys.ClosedGeneration(tx.Range(), p.Service, p.Account, p.Container, p.Generation))
		return nil
	}))
	return r
}

// does is a command made of one function.
type does func(tx *ranges.Tx) error

func (c does) Evaluate(tx *ranges.Tx) error { return c(tx) }

// follows sets the gates of the present primary's epoch, and has the range claim that it has kept all.
func (r regained) follows(g change.Gate) {
	r.t.Helper()
	g.Epoch, g.Role = geo.Epoch{Number: 2, Location: "south"}, change.RoleSecondary
	r.gates(g)
	stamptest.Submit(r.t, r.Stamp, geo.FirstRange(geo.Table), does(func(tx *ranges.Tx) error {
		return stageClaim(tx, tx.Timestamp(0), "acct", change.LostClaim{Number: 2, Location: "south"})
	}))
}

// submit submits a regain as a node that does not lead the range does.
func (r regained) submit(body regainBody) (*regain, error) {
	r.t.Helper()
	gate := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "south"}, Role: change.RoleSecondary, Open: true}
	sent := &regain{regainBody: body, rejoin: rejoin{setGate: setGate{account: "acct", gate: gate}}}
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
	require.True(t, r.closed(p))

	c, err = r.submit(regainBody{})
	require.NoError(t, err)
	require.NoError(t, c.outcome())
	require.False(t, c.open)
	require.False(t, r.gate().Open, "it was asked whether it is")
	c, err = r.submit(regainBody{Open: true, Swept: many[1:]})
	require.NoError(t, err)
	require.NoError(t, c.outcome())
	require.True(t, r.gate().Open)
	require.False(t, r.closed(p))
	claim, err := catalog.LostClaim(r.Leader(geo.FirstRange(geo.Table)).State(), geo.Table, "acct", r.gate().Epoch)
	require.NoError(t, err)
	require.Equal(t, many[1:], claim.Swept)

	q := p
	q.Object = "p"
	require.True(t, r.has(q))
	c, err = r.submit(regainBody{Wipe: [][]byte{containerPrefix(p)}}) // One that is late.
	require.NoError(t, err)
	require.NoError(t, c.outcome())
	require.True(t, c.open)
	require.True(t, r.has(q), "nothing is deleted behind an open gate")
}

// R22: a catalog that has gone on to another epoch says nothing of the generations that a rewind has to delete: a rebuild has
// deleted its copy of the containers. Nothing is deleted, and the gate stays closed.
//
// Capability: Failover: Lost changes of containers and tables are rewound, too (R22).
func TestR22RegainReadsTheCatalogOfItsEpoch(t *testing.T) {
	t.Parallel()
	for number, fails := range map[geo.EpochNumber]error{2: nil, 3: kv.ErrBusy} {
		r := newRegained(t)
		lives := r.create("lives")
		r.follows(change.Gate{})
		now := change.Gate{Epoch: geo.Epoch{Number: number, Location: "south"}, Role: change.RoleSecondary}
		stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Catalog), stamptest.Gate{Account: "acct", Gate: now})
		of := catalog.Account{Name: "acct", Redundancy: catalog.RAGRS, Epoch: 2, Primary: "south", Secondary: "north"}
		err := (&Directory{stamp: r}).regain(t.Context(), of, route.Range{ID: geo.FirstRange(geo.Table), Service: geo.Table})
		require.ErrorIs(t, err, fails)
		require.Equal(t, fails == nil, r.gate().Open)
		require.True(t, r.has(lives))
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
			former := &rejoin{setGate: setGate{account: "acct", gate: change.Gate{
				Epoch: geo.Epoch{Number: 2, Location: "south"}, Role: change.RoleSecondary, Open: true,
			}}}
			stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Table), former)
			require.NoError(t, former.outcome())
		} else {
			r.gates(change.Gate{Epoch: geo.Epoch{Number: 2, Location: "south"}, Role: change.RoleSecondary, Open: true})
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

// R22: the keys of a span come in pages, and so do the generations of which it has rows, each once.
func TestR22KeysOfComeInPages(t *testing.T) {
	t.Parallel()
	r := newRegained(t)
	var want [][]byte
	stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Table), does(func(tx *ranges.Tx) error {
		for i := range generationsMax {
			p := keys.Partition{
				Service: geo.Table, Account: "acct", Container: fmt.Sprintf("u%03d", i), Generation: keys.Generation{Epoch: 1, Created: 3}, Object: "p",
			}
			want = append(want, containerPrefix(p))
			rec := change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil)}
			for row := range 3 {
				rec.Ops = append(rec.Ops, change.Op{Row: fmt.Append(nil, row), Value: []byte("v")})
			}
			if err := tx.Local(p, rec); err != nil {
				return err
			}
		}
		return nil
	}))
	list := func(of keysOfBody) (all [][]byte, pages int) {
		for of.From != nil {
			there, err := parseKeysOf((&keysOf{keysOfBody: of}).Encode())
			require.NoError(t, err)
			stamptest.Submit(t, r.Stamp, geo.FirstRange(geo.Table), there)
			here := &keysOf{}
			require.NoError(t, here.DecodeResult(there.EncodeResult()))
			all, of.From, pages = append(all, here.out.Keys...), here.out.Next, pages+1
		}
		return all, pages
	}
	prefix := keys.AppendAccount(nil, geo.Table, "acct")
	of := keysOfBody{From: prefix, End: keys.PrefixEnd(prefix), Generations: true}
	all, pages := list(of)
	require.Equal(t, want, all[1:], "and the table t before")
	require.Equal(t, 2, pages)
	of.Generations = false
	all, pages = list(of)
	require.Len(t, all, 3*generationsMax+1)
	require.Equal(t, 2, pages)
}

// R22: that the catalog comes first reaches the present primary, and is an error for one of a former version.
func TestR22CatalogFirstOverTheLink(t *testing.T) {
	t.Parallel()
	out, err := peerAnswerOf(nil, errCatalogLost)
	require.NoError(t, err)
	require.NotEmpty(t, out.Code)
	body, err := json.Marshal(out)
	require.NoError(t, err)
	require.ErrorIs(t, NewRemotePeer(answers(body)).Rejoin(t.Context(), catalog.Account{Name: "acct"}), errCatalogLost)
}
