// Package recordtest is what tests of a directory's parts share: a stamp with containers of one account.
package recordtest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// Does is a command made of one function.
type Does func(tx *ranges.Tx) error

// Evaluate implements ranges.Command.
func (f Does) Evaluate(tx *ranges.Tx) error { return f(tx) }

// Containers is the stamp of the location north with containers of the account acct, in one range beside the catalog.
type Containers struct {
	*stamp.Stamp
	// Service has the containers.
	Service geo.Service

	t *testing.T
}

// New returns a stamp without containers.
func New(t *testing.T, s geo.Service) *Containers {
	return &Containers{Stamp: stamptest.New(t, "north", geo.Catalog, s), Service: s, t: t}
}

// Range is the range that has the rows of the containers.
func (c *Containers) Range() geo.RangeID {
	data := c.Route().Data("acct")
	return data[slices.IndexFunc(data, func(r route.Range) bool { return r.Service == c.Service })].ID
}

// Gates sets the gate of the account in both ranges.
func (c *Containers) Gates(g change.Gate) {
	for _, of := range []geo.RangeID{c.Route().Catalog(), c.Range()} {
		stamptest.Submit(c.t, c.Stamp, of, stamptest.Gate{Account: "acct", Gate: g})
	}
}

// Write is a write of the catalog.
type Write struct{ services.Write }

// Evaluate implements ranges.Command.
func (w Write) Evaluate(tx *ranges.Tx) error {
	at := tx.Timestamp(0)
	if f, begins := w.Write.(services.Founder); begins {
		f.InEpoch(tx.Gate("acct").Epoch.Number)
	}
	out, err := w.Write.Evaluate(tx, at)
	if err != nil {
		return err
	}
	return tx.Change(w.Partition(), change.Record{CommitTime: at, Partition: w.Partition().Append(nil), Ops: out.Ops})
}

// Create makes a table and returns its partition of the object p, with one row.
func (c *Containers) Create(name string) keys.Partition {
	c.t.Helper()
	made := &catalog.Create{Service: c.Service, Account: "acct", Name: name}
	stamptest.Submit(c.t, c.Stamp, c.Route().Catalog(), Write{made})
	p := keys.Partition{Service: c.Service, Account: "acct", Container: name, Generation: made.Created.Generation(), Object: "p"}
	c.Put(p)
	return p
}

// Put writes a row of a partition.
func (c *Containers) Put(p keys.Partition) {
	c.t.Helper()
	row := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}}
	stamptest.Submit(c.t, c.Stamp, c.Range(), stamptest.Change{Partition: p, Record: row})
}

// Drop deletes a container.
func (c *Containers) Drop(name string) {
	c.t.Helper()
	gone := &catalog.Delete{Service: c.Service, Account: "acct", Name: name}
	stamptest.Submit(c.t, c.Stamp, c.Route().Catalog(), Write{gone})
}

// Has reports whether the row of a partition is there.
func (c *Containers) Has(p keys.Partition) bool {
	c.t.Helper()
	_, ok, err := c.Leader(c.Range()).State().Get(append(p.Append(nil), 'r'))
	require.NoError(c.t, err)
	return ok
}

// Closed reports whether the range takes no more changes of a partition's generation.
func (c *Containers) Closed(p keys.Partition) bool {
	c.t.Helper()
	id := c.Range()
	_, ok, err := c.Leader(id).State().Get(keys.ClosedGeneration(id, p.Service, p.Account, p.Container, p.Generation))
	require.NoError(c.t, err)
	return ok
}
