package clone

import (
	"encoding/binary"
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/membership"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

var sizes = flag.String("sizes", "", "measure how long a clone takes to open, of states of these MiB, such as 20,1024")

// rows is a command that changes the row of an account in the catalog, or others beside it.
type rows struct {
	account catalog.Account
	more    []change.Op
}

func (c rows) Evaluate(tx *ranges.Tx) error {
	v, err := c.account.Encode()
	if err != nil {
		return err
	}
	p := catalog.AccountPartition(c.account.Name)
	return tx.Local(p, change.Record{
		CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: append([]change.Op{{Value: v}}, c.more...),
	})
}

// host starts the stamp of the south, and has Options of a clone of acct on its first node. Its state has some more
// bytes, as incompressible rows.
func host(t *testing.T, bytes int) (*stamp.Stamp, Options) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	dir, shared := t.TempDir(), state.NewShared(64<<20, 500)
	t.Cleanup(shared.Close)
	o := node.Options{
		Location: "south", Peers: []geo.NodeID{1, 2, 3}, Dir: dir, Clock: clock.System{}, Route: route.First(), Transport: memtransport.New(), Seed: 1,
		State: state.Options{Shared: shared, Logger: quiet}, Logger: quiet,
	}
	at := filepath.Join(dir, node.Name("south", 1))
	fillState(t, filepath.Join(at, "state"), o.State, bytes)
	s := stamp.New(o)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, id := range o.Peers {
		require.NoError(t, s.Start(id))
	}
	a := catalog.Account{Name: "acct", Key1: []byte("k"), Key2: []byte("k"), Redundancy: catalog.RAGRS, Primary: "north", Secondary: "south", Epoch: 7, Active: true}
	stamptest.Submit(t, s, s.Route().Catalog(), rows{account: a})
	require.Eventually(t, func() bool { return HasEverything(t.Context(), s.Node(1), s.Route().IDs()) }, time.Minute, 10*time.Millisecond)
	return s, Options{
		Account: "acct", Host: s.Node(1), Live: s, HostDir: at, Node: o, Data: Data{Logger: quiet},
		API: api.Options{Clock: clock.System{}, Logger: quiet},
	}
}

// fillState writes rows of a table into a state store.
func fillState(t *testing.T, dir string, o state.Options, bytes int) {
	t.Helper()
	if bytes == 0 {
		return
	}
	s, err := state.Open(dir, o)
	require.NoError(t, err)
	random, value := rand.NewChaCha8([32]byte{1}), make([]byte, 16<<10)
	for i := 0; i < bytes; i += len(value) {
		_, _ = random.Read(value)
		p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: string(binary.BigEndian.AppendUint32(nil, uint32(i)))}
		b := s.NewBatch()
		require.NoError(t, b.Set(append(p.Append(nil), 'r'), value))
		require.NoError(t, errors.Join(s.Commit(b), b.Close()))
	}
	require.NoError(t, errors.Join(s.Flush(), s.Close()))
}

// clonesOf lists what is in the folders of clones below a data folder.
func clonesOf(t *testing.T, dir string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, dirName+"/") {
			out = append(out, path)
		}
		return nil //nolint:nilerr // The live stores delete files beside the walk.
	}))
	return out
}

func row(account geo.Account) keys.Partition {
	return keys.Partition{Service: geo.Table, Account: account, Container: "t", Object: "p"}
}

func write(t *testing.T, s *stamp.Stamp, account geo.Account, value string) {
	t.Helper()
	rec := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte(value)}}}
	stamptest.Submit(t, s, geo.FirstRange(geo.Table), stamptest.Change{Partition: row(account), Record: rec})
}

func value(t *testing.T, s *stamp.Stamp, account geo.Account) (out string) {
	t.Helper()
	require.NoError(t, s.Read(t.Context(), geo.FirstRange(geo.Table), func(at ranges.State) error {
		v, _, err := at.Get(append(row(account).Append(nil), 'r'))
		out = string(v)
		return err
	}))
	return out
}

// In a clone the account has no copy and its primary is here, in an epoch above all that were seen for its name, with open
// gates without numbers; no other account has a gate, and no stream anything. It acknowledges writes alone, also after its
// node was opened again, and its host has nothing of them. Closed, nothing of it is left, and its host collects again.
func TestOpen(t *testing.T) {
	s, o := host(t, 0)
	op, err := catalog.SeenOp(geo.Epoch{Number: 9, Location: "north"})
	require.NoError(t, err)
	a := catalog.Account{Name: "acct", Key1: []byte("k"), Key2: []byte("k"), Redundancy: catalog.RAGRS, Primary: "north", Secondary: "south", Epoch: 8, Active: true, Turn: 2}
	stamptest.Submit(t, s, s.Route().Catalog(), rows{account: a, more: []change.Op{op}})
	table := geo.FirstRange(geo.Table)
	for _, account := range []geo.Account{"acct", "other"} {
		shipped := change.Gate{Epoch: geo.Epoch{Number: 3, Location: "south"}, Role: change.RolePrimary, Open: true, Numbered: true}
		stamptest.Submit(t, s, table, stamptest.Gate{Account: account, Gate: shipped})
		write(t, s, account, "before")
	}
	require.Eventually(t, func() bool { // Also where node 1 leads, or another one comes to lead.
		r, nothing := s.Node(1).Range(table), func(ranges.State) error { return nil }
		return r.Read(t.Context(), nothing) == nil || r.ReadFollowing(t.Context(), nothing) == nil
	}, time.Minute, 10*time.Millisecond)
	began := geo.TimestampOf(time.Now())
	c, err := Open(t.Context(), o)
	require.NoError(t, err)
	write(t, c.stamp, "acct", "clone")
	m := c.stamp.Leader(table).Machine
	heads, _ := m.Heads()
	require.Empty(t, heads)
	backlog, err := m.Backlog()
	require.NoError(t, err)
	require.Zero(t, backlog.Records)
	require.Greater(t, m.AppliedState().Last, began+geo.TicksPerSecond, "R6: above all that may be in it")
	require.NoError(t, c.stamp.Stop(1, false)) // As a failed node is opened again.
	require.NoError(t, c.stamp.Start(1))
	require.Equal(t, "clone", value(t, c.stamp, "acct"))
	require.Equal(t, "before", value(t, c.stamp, "other"))
	require.Equal(t, "before", value(t, s, "acct"))
	want := change.Gate{Epoch: geo.Epoch{Number: 10, Location: "south"}, Role: change.RolePrimary, Open: true}
	for _, r := range o.Node.Route.Ranges() {
		require.Equal(t, map[geo.Account]change.Gate{"acct": want}, c.stamp.Leader(r.ID).Machine.Gates())
	}
	require.NoError(t, c.stamp.Read(t.Context(), s.Route().Catalog(), func(st ranges.State) error {
		got, err := catalog.GetAccount(st, "acct")
		require.Equal(t, &catalog.Account{
			Version: 1, Name: "acct", Key1: []byte("k"), Key2: []byte("k"), Redundancy: catalog.LRS, Primary: "south", Epoch: 10, Active: true,
		}, got)
		return err
	}))
	require.NotEmpty(t, clonesOf(t, o.HostDir))
	require.NoError(t, c.Close())
	require.Empty(t, clonesOf(t, o.HostDir))
}

// An account that this location may not make writable is refused, and nothing is left: one that has an operation, or is
// promoted, one whose secondary is elsewhere, one that is not there.
func TestOpenRefused(t *testing.T) {
	s, o := host(t, 0)
	a := catalog.Account{Name: "acct", Redundancy: catalog.LRS, Primary: "south", Epoch: 7, Active: true}
	put := func(r rows) {
		stamptest.Submit(t, s, s.Route().Catalog(), r)
		// A clone is of what one node has applied.
		require.Eventually(t, func() bool { return HasEverything(t.Context(), o.Host, s.Route().IDs()) }, time.Minute, 10*time.Millisecond)
	}
	put(rows{account: a})
	_, err := Open(t.Context(), o)
	require.ErrorIs(t, err, storageerr.AccountNotFound)
	a.Secondary, a.Primary, a.Redundancy = "south", "north", catalog.RAGRS
	a.Operation = &catalog.Operation{Kind: catalog.OperationBootstrap, Copying: true}
	put(rows{account: a})
	_, err = Open(t.Context(), o)
	require.ErrorContains(t, err, "bootstrap")
	a.Operation = nil
	op, err := catalog.PromotionOp(&catalog.Promotion{Number: 7, Location: "north", Phase: catalog.PromotionApplying})
	require.NoError(t, err)
	put(rows{account: a, more: []change.Op{op}})
	_, err = Open(t.Context(), o)
	require.ErrorContains(t, err, "unplanned failover")
	o.Account = "nobody"
	_, err = Open(t.Context(), o)
	require.ErrorIs(t, err, storageerr.AccountNotFound)
	require.Empty(t, clonesOf(t, o.HostDir))
}

// How long a clone takes to open does not depend on the size of the state: go test ./server/clone -run TestOpenTime -v
// -args -sizes 20,1024 measures it.
//
// Capability: Failover: A drill on a clone.
func TestOpenTime(t *testing.T) {
	if *sizes == "" {
		t.Skip("-sizes gives the sizes to measure")
	}
	for _, text := range strings.Split(*sizes, ",") {
		mib, err := strconv.Atoi(text)
		require.NoError(t, err)
		t.Run(text, func(t *testing.T) {
			_, o := host(t, mib<<20)
			for range 3 {
				began := time.Now()
				c, err := Open(t.Context(), o)
				require.NoError(t, err)
				opened := time.Now()
				require.NoError(t, c.Close())
				t.Logf("%d MiB: opened in %v, deleted in %v", mib, opened.Sub(began).Round(time.Millisecond), time.Since(opened).Round(time.Millisecond))
			}
		})
	}
}

// R4: folders of clones that are another node's are neither deleted as leftovers nor replaced by a clone.
func TestR4ClonesOfAnotherNode(t *testing.T) {
	s, o := host(t, 0)
	fs := fileSystem(o.Node.State)
	of := func(account string) string { return filepath.Join(o.HostDir, dirName, account) }
	foreign := membership.Owner{Kind: membership.Clone, Location: "south", Node: 2}
	require.NoError(t, membership.Claim(fs, of("acct"), foreign))
	require.NoError(t, membership.Claim(fs, of("mine"), ownerOf(s.Node(1), "south")))
	_, err := Open(t.Context(), o)
	require.ErrorIs(t, err, membership.ErrOwner)
	require.ErrorContains(t, err, "belongs to a clone of south-2, not to a clone of south-1")
	require.FileExists(t, filepath.Join(of("acct"), "owner"))
	err = RemoveLeftovers(o.Node.State, o.HostDir, s.Node(1), "south", slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, membership.ErrOwner)
	require.FileExists(t, filepath.Join(of("acct"), "owner"))
	require.NoDirExists(t, of("mine"))
}
