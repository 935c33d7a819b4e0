package directory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/planned"
	"antipode/geo"
	"antipode/replication/link"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// counted is a stamp that counts what is submitted: one for commands that are submitted together.
type counted struct {
	*stamp.Stamp
	of map[string]int
}

func (c counted) Submit(ctx context.Context, id geo.RangeID, cmd ranges.Command) error {
	c.of[fmt.Sprintf("%T in %d", cmd, id)]++
	return c.Stamp.Submit(ctx, id, cmd)
}

func (c counted) SubmitAll(ctx context.Context, id geo.RangeID, cmds []ranges.Command) []error {
	c.of[fmt.Sprintf("%T in %d", cmds[0], id)]++
	return c.Stamp.SubmitAll(ctx, id, cmds)
}

// network is calls that counts, and has no method for several calls in one where the far end is older.
type network struct {
	calls
	older bool
	made  map[string]int
}

func (n network) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	n.made[method]++
	if n.older && method == "directory.Together" {
		return nil, errors.New("nobody answers such calls here")
	}
	return n.calls.Call(ctx, method, body)
}

// remote gives the locations directories that call each other over a network, on stamps that count.
func (w *world) remote(older bool) (of map[geo.Location]counted, to map[geo.Location]network) {
	of, to = map[geo.Location]counted{}, map[geo.Location]network{}
	for _, p := range w.locations {
		of[p.name], to[p.name] = counted{p.stamp, map[string]int{}}, network{calls{}, older, map[string]int{}}
		p.directory = directory.NewDirectory(of[p.name], p.far.name)
		directory.ServePeer(to[p.name], link.New(), p.directory, nil)
	}
	for _, p := range w.locations {
		p.directory.SetPeer(directory.NewRemotePeer(to[p.far.name]))
	}
	return of, to
}

// goOn has operations go on at both locations, and what is shipped arrive, until done.
func (w *world) goOn(t *testing.T, done func() bool) {
	for n := 0; !done(); n++ {
		require.Less(t, n, 100)
		for _, p := range w.locations {
			_, _ = p.directory.Resume(t.Context()) // Not all steps are possible before the next records arrive.
			p.ship(t, func(geo.Account) bool { return true })
		}
	}
}

// at returns how many accounts have their primary at a location, as both know, with no operation.
func (w *world) at(t *testing.T, l geo.Location) int {
	n := map[geo.Account]int{}
	for _, p := range w.locations {
		list, err := p.directory.Accounts(t.Context())
		require.NoError(t, err)
		for _, a := range list {
			if a.Primary == l && a.Operation == nil {
				n[a.Name]++
			}
		}
	}
	both := 0
	for _, count := range n {
		if count == len(w.locations) {
			both++
		}
	}
	return both
}

// R19: the steps of the moves of many accounts have one group in each range and one call, however many there are, and each
// account is moved by its own commit. A location of an older program gets the calls one by one.
func TestR19ManyMovesShareTheirGroups(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{false, true} {
		t.Run(fmt.Sprint("older=", older), func(t *testing.T) {
			const many = 40
			w := newWorld(t)
			of, to := w.remote(older)
			north, south := w.locations[0], w.locations[1]
			for i := range many {
				_, err := north.directory.CreateAs(t.Context(), directory.Wanted{Name: geo.Account(fmt.Sprintf("acct%02d", i)), Redundancy: catalog.RAGRS})
				require.NoError(t, err)
			}
			w.goOn(t, func() bool { return w.at(t, "north") == many })
			clear(of["north"].of)
			clear(of["south"].of)
			clear(to["south"].made)
			for i := range many {
				_, err := north.directory.Mover().Move(t.Context(), geo.Account(fmt.Sprintf("acct%02d", i)), planned.MoveWithin)
				require.NoError(t, err)
			}
			w.goOn(t, func() bool { return w.at(t, "south") == many })
			for _, svc := range []geo.Service{geo.Blob, geo.Queue, geo.Table} {
				id := geo.FirstRange(svc)
				if !older {
					require.LessOrEqual(t, of["south"].of[fmt.Sprintf("*directory.openTaken in %d", id)], 2, "the offer opens them, then Resume looks")
				}
				require.LessOrEqual(t, of["north"].of[fmt.Sprintf("*directory.setGate in %d", id)], 2, "the gates close together: %v", of["north"].of)
				for i := range many {
					g := south.stamp.Leader(id).Machine.Gate(geo.Account(fmt.Sprintf("acct%02d", i)))
					require.True(t, g.Role == change.RolePrimary && g.Open && g.Numbered, "%+v", g)
				}
			}
			if older {
				require.GreaterOrEqual(t, to["south"].made["directory.Offer"], many)
				return
			}
			require.Positive(t, to["south"].made["directory.Together"])
			require.Zero(t, to["south"].made["directory.Offer"], "%v", to["south"].made)
			require.LessOrEqual(t, of["south"].of["*directory.take in "+fmt.Sprint(geo.FirstRange(geo.Catalog))], 1)
		})
	}
}

// Every method that the other location serves is served in a call of several, too: the steps of two accounts that are due
// at once travel so.
func TestEveryCallCanBeShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	served := calls{}
	directory.ServePeer(served, link.New(), w.locations[0].directory, nil)
	require.Greater(t, len(served), 5)
	for method := range served {
		if method == "directory.Together" {
			continue
		}
		body, err := json.Marshal([]map[string]any{{"method": method, "body": "x"}, {"method": method, "body": "x"}})
		require.NoError(t, err)
		b, err := served.Call(t.Context(), "directory.Together", body)
		require.NoError(t, err)
		var out []struct {
			Error string `json:"error"`
		}
		require.NoError(t, json.Unmarshal(b, &out))
		for _, o := range out {
			require.NotContains(t, o.Error, "no method", method)
		}
	}
}
