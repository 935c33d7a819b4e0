package logtest

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/state"
)

// Model is the whole of one range's log as a reader sees it: the simple twin of an
// state.RangeLog.
type Model struct {
	Truncated, TruncatedTerm uint64
	// Hard is term, vote and commit.
	Hard    [3]uint64
	Entries []*pb.Entry
}

// Entry returns an entry.
func Entry(index, term uint64, typ pb.EntryType, data []byte) *pb.Entry {
	return &pb.Entry{Index: &index, Term: &term, Type: &typ, Data: data}
}

// Entries returns count entries of about size bytes from index first on, each with
// different bytes.
func Entries(first, term uint64, count, size int) []*pb.Entry {
	var out []*pb.Entry
	for i := range count {
		index := first + uint64(i)
		data := bytes.Repeat([]byte{byte(index), byte(index >> 8), byte(term), 7}, size/4)
		out = append(out, Entry(index, term, pb.EntryNormal, data))
	}
	return out
}

// Plain is an entry as one word.
func Plain(e *pb.Entry) string {
	return fmt.Sprintf("%d/%d %s %08x+%d", e.GetIndex(), e.GetTerm(), e.GetType(), crc32.ChecksumIEEE(e.Data), len(e.Data))
}

// Last is the last index.
func (m *Model) Last() uint64 { return m.Truncated + uint64(len(m.Entries)) }

// Term is the term of an index that the log has, or of the last one trimmed.
func (m *Model) Term(index uint64) uint64 {
	if index == m.Truncated {
		return m.TruncatedTerm
	}
	return m.Entries[index-m.Truncated-1].GetTerm()
}

// Clone returns a copy.
func (m *Model) Clone() *Model {
	c := *m
	c.Entries = append([]*pb.Entry(nil), m.Entries...)
	return &c
}

// Append replaces what follows the first of the entries.
func (m *Model) Append(entries ...*pb.Entry) {
	keep := entries[0].GetIndex() - m.Truncated - 1
	m.Entries = append(m.Entries[:keep:keep], entries...)
}

// Trim removes the entries up to index.
func (m *Model) Trim(index uint64) {
	m.TruncatedTerm = m.Term(index)
	m.Entries, m.Truncated = m.Entries[index-m.Truncated:], index
}

// Reset removes all entries: the log begins behind last.
func (m *Model) Reset(last geo.EntryID) {
	m.Truncated, m.TruncatedTerm, m.Entries = last.Index, last.Term, nil
}

// String is all of it, for comparison.
func (m *Model) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "truncated %d/%d hard %v:", m.Truncated, m.TruncatedTerm, m.Hard)
	for _, e := range m.Entries {
		b.WriteString(" " + Plain(e))
	}
	return b.String()
}

// Read reads all of g through raft.Storage.
func Read(g state.RangeLog) (*Model, error) {
	first, err := g.FirstIndex()
	if err != nil {
		return nil, err
	}
	last, err := g.LastIndex()
	if err != nil {
		return nil, err
	}
	m := &Model{Truncated: first - 1}
	if m.TruncatedTerm, err = g.Term(first - 1); err != nil {
		return nil, err
	}
	if m.Entries, err = g.Entries(first, last+1, math.MaxUint64); err != nil {
		return nil, err
	}
	hs, _, err := g.InitialState()
	m.Hard = [3]uint64{hs.GetTerm(), hs.GetVote(), hs.GetCommit()}
	return m, err
}

// Require checks that g reads as the model.
func Require(t require.TestingT, want *Model, g state.RangeLog) {
	got, err := Read(g)
	require.NoError(t, err)
	require.Equal(t, want.String(), got.String())
	for _, e := range want.Entries {
		term, err := g.Term(e.GetIndex())
		require.NoError(t, err)
		require.Equal(t, e.GetTerm(), term)
	}
	_, err = g.Term(want.Last() + 1)
	require.ErrorIs(t, err, raft.ErrUnavailable)
	_, err = g.Entries(want.Last()+1, want.Last()+2, math.MaxUint64)
	require.ErrorIs(t, err, raft.ErrUnavailable)
	if want.Truncated > 0 {
		_, err = g.Term(want.Truncated - 1)
		require.ErrorIs(t, err, raft.ErrCompacted)
		_, err = g.Entries(want.Truncated, want.Last()+1, math.MaxUint64)
		require.ErrorIs(t, err, raft.ErrCompacted)
	}
}

// Range opens a range.
func Range(t require.TestingT, l state.Log, r geo.RangeID) state.RangeLog {
	g, err := l.Range(r, []uint64{1, 2, 3})
	require.NoError(t, err)
	return g
}

// Commit stages and commits a batch.
func Commit(t require.TestingT, l state.Log, sync bool, stage func(b state.LogBatch) error) {
	b := l.NewBatch()
	require.NoError(t, stage(b))
	require.NoError(t, b.Commit(sync))
}

// Step stages a random step of a Raft log on g and does the same to m. Entries have
// up to size bytes.
func Step(rng *rand.Rand, g state.RangeLog, m *Model, b state.LogBatch, size int) error {
	switch rng.IntN(20) {
	case 0, 9: // A new leader replaces a suffix, or starts above it.
		if at := m.Truncated + 1 + rng.Uint64N(uint64(len(m.Entries)+1)); at > 1 {
			entries := Entries(at, m.Term(m.Last())+1, 1+rng.IntN(3), rng.IntN(size))
			m.Append(entries...)
			return g.Append(b, entries)
		}
	case 1: // A range snapshot: behind, at or above where the log ends.
		last := geo.EntryID{Index: m.Truncated + rng.Uint64N(uint64(len(m.Entries)+4)), Term: m.Term(m.Last()) + rng.Uint64N(2)}
		m.Reset(last)
		return g.Reset(b, last)
	case 2, 3:
		if index := m.Truncated + rng.Uint64N(uint64(len(m.Entries)+1)); index > m.Truncated {
			m.Trim(index)
			return g.Trim(b, index)
		}
	case 4, 5, 6, 7, 8:
		m.Hard = [3]uint64{m.Hard[0] + rng.Uint64N(2), rng.Uint64N(4), m.Last()}
		n := m.Hard
		return g.SetHardState(b, &pb.HardState{Term: &n[0], Vote: &n[1], Commit: &n[2]})
	}
	entries := Entries(m.Last()+1, max(1, m.Term(m.Last())), 1+rng.IntN(4), rng.IntN(size))
	m.Append(entries...)
	return g.Append(b, entries)
}
