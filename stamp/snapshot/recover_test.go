package snapshot

import (
	"errors"
	"log/slog"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/durable"
	"antipode/stamp/keys"
	"antipode/stamp/replica"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

// R4: what the plan of a snapshot says decides, after a crash, whether the state in the store is that of the snapshot, and
// whether the log has kept what it held when that was ingested: index and term of the last entry, term and vote. Only where
// the log does not have that very entry it begins again behind the snapshot; otherwise what followed stays.
func TestRecoverComparesTerms(t *testing.T) {
	last := geo.EntryID{Term: 7, Index: 20}
	planned := plan{id: testRange, last: last, hardTerm: 7, vote: 2}
	for name, c := range map[string]struct {
		state      geo.EntryID
		term, vote uint64
		logTerm    uint64 // of its entry 20, of 18 to 22
		lost       bool
		first      uint64 // index of the log after it
	}{
		"the log lacks the entry":            {state: last, term: 7, vote: 2, first: 21},
		"the log has it":                     {state: last, term: 7, vote: 2, logTerm: 7, first: 18},
		"the log has one of another term":    {state: last, term: 7, vote: 2, logTerm: 6, first: 21},
		"a later term, and another vote":     {state: last, term: 8, vote: 3, first: 21},
		"the term is forgotten":              {state: last, term: 6, vote: 2, lost: true, first: 1},
		"an earlier term of a log that kept": {state: last, term: 6, vote: 2, logTerm: 6, lost: true, first: 18},
		"the vote is forgotten":              {state: last, term: 7, vote: 0, lost: true, first: 1},
		"it was not ingested":                {state: geo.EntryID{Term: 6, Index: 10}, term: 7, vote: 2, first: 1},
		"an entry of another term":           {state: geo.EntryID{Term: 6, Index: 20}, term: 7, vote: 2, logTerm: 6, first: 18},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			store, err := state.Open("state", state.Options{FS: fs})
			require.NoError(t, err)
			b := store.NewBatch()
			require.NoError(t, b.Set(keys.Applied(testRange), change.AppendApplied(nil, change.AppliedState{EntryID: c.state})))
			require.NoError(t, errors.Join(store.Commit(b), b.Close()))
			log, err := seglog.Open("log", state.Options{FS: fs})
			require.NoError(t, err)
			rlog, err := log.Range(testRange, nil)
			require.NoError(t, err)
			batch := log.NewBatch()
			if c.logTerm > 0 {
				require.NoError(t, rlog.Reset(batch, geo.EntryID{Term: 1, Index: 17}))
				var entries []*pb.Entry
				for index := uint64(18); index <= 22; index++ {
					entries = append(entries, &pb.Entry{Index: &index, Term: &c.logTerm})
				}
				require.NoError(t, rlog.Append(batch, entries))
			}
			commit := uint64(0)
			require.NoError(t, rlog.SetHardState(batch, &pb.HardState{Term: &c.term, Vote: &c.vote, Commit: &commit}))
			require.NoError(t, batch.Commit(true))
			m := NewManager(t.Context(), Options{FS: fs, Dir: "snap", State: store, Log: log, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, durable.MkdirAll(fs, m.StagedDir(testRange)))
			require.NoError(t, durable.Write(fs, m.StagedDir(testRange), planName, planned.encode()))

			lost, err := m.Recover(testRange, rlog)
			require.NoError(t, err)
			if c.lost {
				require.ErrorIs(t, lost, replica.ErrLost)
			} else {
				require.NoError(t, lost)
				_, err = fs.Stat(m.StagedDir(testRange))
				require.ErrorIs(t, err, os.ErrNotExist, "it is removed")
			}
			first, err := rlog.FirstIndex()
			require.NoError(t, err)
			require.Equal(t, c.first, first)
			require.NoError(t, errors.Join(log.Close(), store.Close()))
		})
	}
}
