package node_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

// noBase has no chunks.
type noBase struct{}

func (noBase) HasChunk(extent.Ref) bool { return false }

func (noBase) ReadChunk(extent.Ref, int64, []byte) (int, error) { return 0, extent.ErrNotFound }

// startCloned starts a stamp of some nodes on fs.
func startCloned(t *testing.T, fs vfs.FS, dir string, base Base, ids ...geo.NodeID) *stamp.Stamp {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	s := stamp.New(Options{
		Location: "north", Peers: ids, Dir: dir, Clock: clock.System{}, Transport: memtransport.New(), Base: base,
		Tick: 20 * time.Millisecond, InSyncTimeout: time.Minute, Seed: 1, Logger: quiet,
		State: state.Options{FS: fs, LogSegmentBytes: 1 << 20, Logger: quiet},
	})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, id := range ids {
		require.NoError(t, s.Start(id))
	}
	return s
}

// The folder that WriteClone writes opens as a stamp of one node: with every row, with the gate of the one account alone,
// and with nothing of a stream. It acknowledges writes alone, at times above all that it had, and again after a restart.
// The host has nothing of them.
func TestCloneOfANode(t *testing.T) {
	fs := vfs.NewMem()
	s := startCloned(t, fs, "data", nil, 1, 2, 3)
	shipped := change.Gate{Epoch: geo.Epoch{Number: 3, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
	account := partition(0).Account
	for _, a := range []geo.Account{account, "other"} {
		stamptest.Submit(t, s, testRange, stamptest.Gate{Account: a, Gate: shipped})
	}
	write := func(s ranges.Submitter, i int, value string) {
		rec := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: []byte(value)}}}
		stamptest.Submit(t, s, testRange, stamptest.Change{Partition: partition(i), Record: rec})
	}
	valueOf := func(s ranges.Reader, i int) (out string) {
		require.NoError(t, s.Read(t.Context(), testRange, func(at ranges.State) error {
			v, _, err := at.Get(append(partition(i).Append(nil), 'r'))
			out = string(v)
			return err
		}))
		return out
	}
	for i := range 10 {
		write(s, i, "before")
	}
	id, ok := s.LeaderNode(testRange)
	require.True(t, ok)
	host := s.Node(id)
	require.Eventually(t, func() bool { return host.HasEverything(t.Context()) }, electionWait, time.Millisecond)

	own := change.Gate{Epoch: geo.Epoch{Number: 4, Location: "north"}, Role: change.RolePrimary, Open: true}
	floor := geo.TimestampOf(time.Now().Add(time.Hour))
	adapt := func(_ *state.Store, b *state.Batch) (change.Gate, error) {
		return own, b.Set(append(partition(3).Append(nil), 'r'), []byte("adapted"))
	}
	require.NoError(t, host.WriteClone(fs.PathJoin("clone", Name("north", id)), account, floor, adapt))
	c := startCloned(t, fs, "clone", noBase{}, id)
	write(c, 1, "clone")
	m := c.Leader(testRange).Machine
	require.Equal(t, map[geo.Account]change.Gate{account: own}, m.Gates())
	require.False(t, m.Uncompared())
	heads, _ := m.Heads()
	require.Empty(t, heads)
	backlog, err := m.Backlog()
	require.NoError(t, err)
	require.Zero(t, backlog.Records)
	require.Greater(t, m.AppliedState().Last, floor, "R6")

	require.NoError(t, c.Stop(id, false))
	require.NoError(t, c.Start(id))
	write(c, 2, "again")
	want := []string{"before", "clone", "again", "adapted", "before"}
	for i, v := range want {
		require.Equal(t, v, valueOf(c, i))
		require.Equal(t, "before", valueOf(s, i))
	}
	ref := extent.NewRef(extent.ChunkID{1}, []byte("payload"))
	require.NoError(t, c.PutChunk(t.Context(), ref, []byte("payload")))
	require.True(t, c.HasChunk(ref))
	require.False(t, c.HasChunk(extent.NewRef(extent.ChunkID{2}, []byte("payload"))))
}
