package scrub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/state"
)

// disk is all that a Scrubber works on: chunks, one row that names one of them, an empty
// log, a file, and the node.
type disk struct {
	held      map[extent.ChunkID]bool
	named     extent.Ref
	file      error // what its check finds
	complete  bool
	version   uint64
	applied   uint64
	unnamings uint64
	settles   int
	fills     bool
	peers     bool         // they have every chunk but those that are damaged
	damaged   []extent.Ref // here, and nobody has them intact
	swept     int
	calls     []string
}

func (d *disk) record(format string, args ...any) {
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

// As scrub.Chunks.

func (d *disk) Scrub(context.Context) (extent.Ref, error)    { return extent.Ref{}, io.EOF }
func (d *disk) Damaged(int) []extent.Ref                     { return slices.Clone(d.damaged) }
func (d *disk) Durable(id extent.ChunkID) bool               { return d.held[id] }
func (d *disk) Sync(context.Context) error                   { return nil }
func (d *disk) BeginRound(bool)                              { d.record("walk begins") }
func (d *disk) Mark(ref extent.Ref) bool                     { return d.held[ref.ID] }
func (d *disk) EndRound()                                    { d.record("walk ends") }
func (d *disk) Sweep(int) (chunks int, bytes int64, e error) { d.swept++; return 0, 0, nil }
func (d *disk) Compact(context.Context) (int64, error)       { return 0, nil }
func (d *disk) Stats() extent.Stats                          { return extent.Stats{} }

// As scrub.Node.

func (d *disk) Applied() uint64                  { return d.applied }
func (d *disk) Unnamings() uint64                { return d.unnamings }
func (d *disk) Settle(context.Context) error     { d.settles++; return nil }
func (d *disk) DiskFills() bool                  { return d.fills }
func (d *disk) NamesComplete() (uint64, bool)    { return d.version, d.complete }
func (d *disk) Quarantine(store string, _ error) { d.record("quarantine %s", store) }
func (d *disk) Repaired(chunks, _ int)           { d.record("repaired %d", chunks) }
func (d *disk) Copy(ref extent.Ref) error {
	if !d.peers || slices.Contains(d.damaged, ref) {
		return errors.New("no peer has it")
	}
	d.held[ref.ID] = true
	return nil
}

// As a log, as rows, and as the files of a store.

func (d *disk) FirstIndex() (uint64, error)                         { return 1, nil }
func (d *disk) LastIndex() (uint64, error)                          { return 0, nil }
func (d *disk) Entries(uint64, uint64, uint64) ([]*pb.Entry, error) { return nil, nil }
func (d *disk) ScanDurable([]byte, []byte) (kv.Iterator, error)     { return &oneRow{}, nil }
func (d *disk) Files() ([]state.File, error) {
	return []state.File{{Path: "a", Bytes: 8 << 20}, {Path: "b", Bytes: 1 << 20}}, nil
}

func (d *disk) Verify(f state.File) error {
	d.record("check %s", f.Path)
	return d.file
}

type oneRow struct{ past bool }

func (r *oneRow) Next() bool         { was := r.past; r.past = true; return !was }
func (r *oneRow) Key() []byte        { return []byte("k") }
func (r *oneRow) Value() []byte      { return nil }
func (r *oneRow) SeekGE([]byte) bool { return false }
func (r *oneRow) Close() error       { return nil }

// run works for a while of the test's clock and returns what was done.
func run(t *testing.T, d *disk, o Options, spans ...time.Duration) (s *Scrubber, calls [][]string) {
	t.Helper()
	c := clock.NewManual(time.Unix(0, 0))
	o.Node, o.Chunks, o.Rows, o.Clock, o.CopyBytesPerSecond, o.Logger = d, d, d, c, 1<<20, slog.New(slog.DiscardHandler)
	o.RowChunks = func(geo.RangeID, []byte, []byte) ([]extent.Ref, error) { return []extent.Ref{d.named}, nil }
	s, err := New(o)
	require.NoError(t, err)
	for _, span := range spans {
		d.calls = nil
		for end := c.Mono() + span; ; {
			rest := s.Step(t.Context())
			if c.Mono()+rest > end {
				c.Advance(end - c.Mono())
				break
			}
			c.Advance(rest)
		}
		calls = append(calls, d.calls)
	}
	return s, calls
}

func newDisk() *disk {
	return &disk{held: map[extent.ChunkID]bool{}, named: extent.NewRef(extent.ChunkID{1}, []byte("payload")), complete: true}
}

func oneRange(d *disk) []Range { return []Range{{ID: 2, Log: d, Spans: []state.Span{{}}}} }

// A chunk that a walk found missing waits for its repair over the begin of the next walk, and
// one that no peer has is found again by that.
//
// Capability: Storage on a node: Scrub, repair from a peer, orphan chunks, compaction.
func TestMissingChunksOutlastWalks(t *testing.T) {
	d := newDisk()
	s, calls := run(t, d, Options{Ranges: oneRange(d), Grace: 10 * time.Minute}, time.Hour)
	require.Contains(t, calls[0], "walk ends")
	require.NotContains(t, calls[0], "repaired 1")
	require.Greater(t, s.Stats().Missing, uint64(1))
	d.peers = true
	s.mark([]extent.Ref{d.named})
	require.NoError(t, s.beginCollect(t.Context()))
	s.repairStep(t.Context())
	require.Contains(t, d.calls, "repaired 1")
	require.EqualValues(t, 1, s.Stats().Repaired)
	require.True(t, d.held[d.named.ID])
}

// A chunk that no peer had when the repair tried it is tried again, without another walk, which may be a day away. Once
// a whole walk finds that nothing names it any more it is not.
//
// Capability: Storage on a node: Scrub, repair from a peer, orphan chunks, compaction.
func TestMissingChunksWaitForTheirPeers(t *testing.T) {
	d := newDisk()
	s, calls := run(t, d, Options{Ranges: oneRange(d)}, time.Hour/2)
	require.Equal(t, []string{"walk begins", "walk ends"}, calls[0])
	require.Equal(t, repairAgain, s.repairStep(t.Context()))
	d.peers = true
	s.repairStep(t.Context())
	require.Contains(t, d.calls, "repaired 1")
	require.True(t, d.held[d.named.ID])
	require.Empty(t, s.missing)

	d = newDisk()
	s, _ = run(t, d, Options{Ranges: oneRange(d)}, time.Hour/2)
	require.Equal(t, []extent.Ref{d.named}, s.missing)
	d.held[extent.ChunkID{2}] = true
	d.named = extent.NewRef(extent.ChunkID{2}, nil)
	d.unnamings++
	for d.calls = nil; len(d.calls) < 2; {
		s.collectStep(t.Context())
	}
	require.Equal(t, []string{"walk begins", "walk ends"}, d.calls)
	require.Empty(t, s.missing)
}

// A damaged chunk that no peer has intact, for ever, does not keep those from their repair that are missing, and is not taken
// for one of them.
//
// Capability: Storage on a node: Scrub, repair from a peer, orphan chunks, compaction.
func TestDamagedChunkDoesNotHoldUpMissingOnes(t *testing.T) {
	d := newDisk()
	d.peers, d.damaged = true, []extent.Ref{extent.NewRef(extent.ChunkID{2}, nil)}
	s, _ := run(t, d, Options{Ranges: oneRange(d)})
	s.mark([]extent.Ref{d.named})
	require.Equal(t, repairAgain, s.repairStep(t.Context()))
	require.True(t, d.held[d.named.ID])
	require.Equal(t, []string{"repaired 1"}, d.calls)
	require.Empty(t, s.missing)
}

// A walk ends although a log grows faster than it is walked over.
func TestCollectEndsBesideALogThatGrows(t *testing.T) {
	d := newDisk()
	d.held[d.named.ID] = true
	_, calls := run(t, d, Options{Ranges: []Range{{ID: 2, Log: &growingLog{disk: d}, Spans: []state.Span{{}}}}}, time.Hour/2)
	require.Equal(t, []string{"walk begins", "walk ends"}, calls[0])
}

// growingLog is a log that has another entry each time that it is looked at.
type growingLog struct {
	*disk
	last uint64
}

func (l *growingLog) LastIndex() (uint64, error) { l.last++; return l.last, nil }
func (l *growingLog) Entries(lo, hi, _ uint64) ([]*pb.Entry, error) {
	return slices.Repeat([]*pb.Entry{{}}, int(hi-lo)), nil
}

// A chunk that the log and a row name waits once.
func TestMissingChunkWaitsOnce(t *testing.T) {
	d := newDisk()
	s, _ := run(t, d, Options{Ranges: oneRange(d)})
	s.mark([]extent.Ref{d.named, d.named})
	s.repairStep(t.Context())
	require.Equal(t, []extent.Ref{d.named}, s.missing)
}

// R9: nothing is swept while the node does not have all names, and a walk during which a
// replica lost them does not count.
func TestCollectWaitsForAllNames(t *testing.T) {
	d := newDisk()
	d.held[d.named.ID] = true
	d.complete = false
	_, calls := run(t, d, Options{Ranges: oneRange(d), Grace: time.Minute}, time.Hour)
	require.Empty(t, calls[0])
	require.Zero(t, d.swept)

	d.complete = true
	s, err := New(Options{
		Node: d, Chunks: d, Rows: d, Clock: clock.NewManual(time.Unix(0, 0)), Ranges: oneRange(d), CopyBytesPerSecond: 1,
		RowChunks: func(geo.RangeID, []byte, []byte) ([]extent.Ref, error) { return nil, nil },
	})
	require.NoError(t, err)
	s.collectStep(t.Context())
	require.True(t, s.collect.active)
	d.version++
	s.collectStep(t.Context())
	require.False(t, s.collect.active)
	require.Zero(t, d.swept)
}

// Invariant 5: a damaged file of a store is reported, every file is checked once in a cycle,
// and a cycle takes its share of the period while clients write; at rest it is faster.
func TestScrubCycle(t *testing.T) {
	d := newDisk()
	d.file, d.complete = state.ErrDamaged, false
	stores := []Store{{Name: "log", Files: d}}
	s, calls := run(t, d, Options{Stores: stores, Period: time.Hour}, time.Minute, 50*time.Minute)
	require.Equal(t, []string{"check a", "quarantine log", "check b", "quarantine log"}, calls[0], "9 MiB at rest are seconds")
	require.Empty(t, calls[1])
	require.EqualValues(t, 1, s.Stats().Cycles)

	busy := newDisk()
	grows := growing{busy}
	s, err := New(Options{Node: grows, Chunks: busy, Rows: busy, Clock: clock.NewManual(time.Unix(0, 0)), Stores: []Store{{"state", busy}}, Period: time.Hour, CopyBytesPerSecond: 1})
	require.NoError(t, err)
	s.beginCycle()
	rest := s.scrubRest(8<<20) + s.scrubRest(1<<20)
	require.InDelta(t, scrubShare*float64(time.Hour), float64(rest), float64(time.Second))
}

// The metrics of the scrub have how far its cycle is, and when the last one ended, which is absent before the first end.
func TestScrubProgressIsMeasured(t *testing.T) {
	reg := prometheus.NewRegistry()
	o := Options{Stores: []Store{{"log", newDisk()}}, Period: time.Hour, Registerer: reg}
	values := func() map[string]float64 {
		all, err := reg.Gather()
		require.NoError(t, err)
		out := map[string]float64{}
		for _, f := range all {
			out[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		return out
	}
	const ended = "antipode_scrub_last_round_timestamp_seconds"

	s, _ := run(t, newDisk(), o, 11*time.Second) // One file of 8 MiB, and the rest after it, at 4 MiB/s.
	require.InDelta(t, 9<<20, values()["antipode_scrub_round_bytes"], 0)
	require.InDelta(t, 8<<20, values()["antipode_scrub_round_read_bytes"], 0)
	require.NotContains(t, values(), ended)
	s.Close()
	s, _ = run(t, newDisk(), o, time.Minute)
	require.InDelta(t, 9<<20, values()["antipode_scrub_round_read_bytes"], 0)
	require.InDelta(t, 12.25, values()[ended], 0.01, "10 s after the start, and 9 MiB at 4 MiB/s")
	s.Close()
	require.Empty(t, values())
}

// growing is a node to which clients write all the time.
type growing struct{ *disk }

func (g growing) Applied() uint64 { g.applied++; return g.applied }

// A chunk that was put since a walk found it missing is not copied from a peer.
func TestRepairSkipsWhatIsHere(t *testing.T) {
	d := newDisk()
	s, _ := run(t, d, Options{Ranges: oneRange(d), Grace: 10 * time.Minute})
	d.peers = true
	s.missing = []extent.Ref{d.named}
	d.held[d.named.ID] = true
	s.repairStep(t.Context())
	require.Empty(t, d.calls)
	require.Empty(t, s.missing)
	require.Zero(t, s.Stats().Repaired)
}
