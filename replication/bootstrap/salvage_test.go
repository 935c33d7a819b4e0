package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/verify"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// snapshots implements verify.Stamp with a stamp.
type snapshots struct{ s *stamp.Stamp }

func (s snapshots) Snapshot(ctx context.Context, r geo.RangeID) (kv.Snapshot, verify.Chunks, error) {
	snap, err := ranges.Snapshot(ctx, s.s, r)
	return snap, nil, err
}

// failingPeer fails the question of a number, counted from 0.
type failingPeer struct {
	verify.Peer
	fails, asked int
}

func (p *failingPeer) Ask(ctx context.Context, r geo.RangeID, q *verify.Question) (*verify.Answer, error) {
	p.asked++
	if p.fails >= 0 && p.asked > p.fails {
		return nil, errors.New("the link is cut")
	}
	return p.Peer.Ask(ctx, r, q)
}

// salvageWorld is a copy at the south, of which some rows are not at the north.
type salvageWorld struct {
	t            *testing.T
	north, south *stamp.Stamp
	peer         *failingPeer
	// only is what the copy alone has, by key.
	only map[string]string
}

func newSalvageWorld(t *testing.T) *salvageWorld {
	all := []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table}
	w := &salvageWorld{t: t, north: stamptest.New(t, "north", all...), south: stamptest.New(t, "south", all...), only: map[string]string{}}
	sessions := verify.NewSessions(verify.Options{Stamp: snapshots{w.north}, Clock: clock.System{}})
	t.Cleanup(func() { require.NoError(t, sessions.Close()) })
	w.peer = &failingPeer{sessions, -1, 0}
	for _, r := range []geo.RangeID{geo.FirstRange(geo.Catalog), geo.FirstRange(geo.Table)} {
		stamptest.Submit(t, w.south, r, stamptest.Gate{Account: "acct", Gate: change.Gate{Epoch: geo.Epoch{Number: 4, Location: "north"}, Role: change.RoleSecondary}})
	}
	w.container("both", true)
	w.container("only", false)
	for i := range 12 {
		w.row("both", fmt.Sprint("same", i), strings.Repeat("s", 100<<10), true)
		w.row("both", fmt.Sprint("extra", i), strings.Repeat("e", 200<<10), false)
	}
	w.row("only", "still there", "v", true) // At the north it is of no container.
	w.row("only", "gone", "v", false)
	return w
}

func (w *salvageWorld) set(s *stamp.Stamp, p keys.Partition, row, value string) {
	rec := change.Record{Ops: []change.Op{{Row: []byte(row), Value: []byte(value)}}}
	stamptest.Submit(w.t, s, geo.FirstRange(p.Service), stamptest.Change{Partition: p, Record: rec})
}

func (w *salvageWorld) container(name string, both bool) {
	p := catalog.ContainerPartition(geo.Table, "acct", name)
	value, err := json.Marshal(catalog.Container{Version: 1, Name: name, Epoch: 1, Created: 7})
	require.NoError(w.t, err)
	w.set(w.south, p, "", string(value))
	if both {
		w.set(w.north, p, "", string(value))
		return
	}
	w.only[string(p.Append(nil))] = string(value)
}

func (w *salvageWorld) row(container, object, value string, both bool) {
	p := keys.Partition{Service: geo.Table, Account: "acct", Container: container, Generation: keys.Generation{Epoch: 1, Created: 7}, Object: object}
	w.set(w.south, p, "r", value)
	if both {
		w.set(w.north, p, "r", value)
	}
	if !both || container == "only" {
		w.only[string(p.Append(nil))+"r"] = value
	}
}

// found returns what is in the lost-and-found of the south.
func (w *salvageWorld) found() map[string]string {
	out := map[string]string{}
	for _, s := range []geo.Service{geo.Catalog, geo.Table} {
		prefix := keys.AppendContainer(nil, s, keys.LostAndFound, "acct", keys.Generation{})
		snap, err := ranges.Snapshot(w.t.Context(), w.south, geo.FirstRange(s))
		require.NoError(w.t, err)
		require.NoError(w.t, keys.Each(snap, prefix, func(key, value []byte) error {
			_, inner, err := keys.ParsePartition(key)
			require.NoError(w.t, err)
			f, err := change.ParseFound(value)
			require.NoError(w.t, err)
			require.NotContains(w.t, out, string(inner), "kept once")
			out[string(inner)] = string(f.Value)
			return nil
		}))
		require.NoError(w.t, snap.Close())
	}
	return out
}

func (w *salvageWorld) copier() *Copier {
	d := New(&record.Store{Stamp: w.south}, nil)
	d.SetFarRows(w.peer)
	return d
}

// R17: what only a copy has is kept before the copy is deleted, whatever step fails: a process that crashes begins again, and
// keeps each row once. Containers that the primary lacks are kept whole, rows that both have are not, and a range that has
// left the epoch of the copy is not looked at.
func TestR17SalvageIsRepeatedAfterAFailureAnywhere(t *testing.T) {
	t.Parallel()
	w := newSalvageWorld(t)
	a := catalog.Account{Name: "acct", Primary: "north", Secondary: "south", Epoch: 5, Redundancy: catalog.RAGRS}
	failures := 0
	for w.peer.fails = 0; ; w.peer.fails++ {
		w.peer.asked = 0
		d := w.copier() // What one before had in memory is gone.
		ctx, cancel := context.WithCancel(t.Context())
		d.SetFarRows(&cancelling{w.peer, cancel})
		err := d.KeepCopy(ctx, a)
		cancel()
		for key, value := range w.found() {
			require.Equal(t, w.only[key], value)
		}
		if err == nil {
			break
		}
		failures++
	}
	require.Greater(t, failures, 5)
	require.Equal(t, w.only, w.found())

	for _, r := range []geo.RangeID{geo.FirstRange(geo.Catalog), geo.FirstRange(geo.Table)} {
		stamptest.Submit(t, w.south, r, stamptest.Gate{Account: "acct", Gate: change.Gate{Epoch: a.GeoEpoch()}})
	}
	w.row("both", "later", "of the new epoch", false)
	w.peer.fails = 0
	require.NoError(t, w.copier().KeepCopy(t.Context(), a))
	require.NotContains(t, w.found(), string(keys.Partition{
		Service: geo.Table, Account: "acct", Container: "both", Generation: keys.Generation{Epoch: 1, Created: 7}, Object: "later",
	}.Append(nil))+"r")
}

// cancelling ends the context of a caller whose question has failed, as a crash ends it.
type cancelling struct {
	verify.Peer
	cancel context.CancelFunc
}

func (c *cancelling) Ask(ctx context.Context, r geo.RangeID, q *verify.Question) (*verify.Answer, error) {
	a, err := c.Peer.Ask(ctx, r, q)
	if err != nil {
		c.cancel()
	}
	return a, err
}
