package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
)

// Log is a node's log of all its ranges: entries and hard states. Package seglog has
// the one that nodes use; the Pebble log of this package is what it is compared with.
type Log interface {
	// Range opens the log of one range. voters is its configuration.
	Range(r geo.RangeID, voters []uint64) (RangeLog, error)
	// NewBatch collects what one scheduler pass appends. Batches are staged and
	// committed one after the other, by one goroutine. One with something staged must
	// be committed: readers see it from its staging on.
	NewBatch() LogBatch
	// Close closes the log.
	Close() error
}

// LogBatch is what one scheduler pass appends, for any number of ranges.
type LogBatch interface {
	// Commit writes the batch; with sync it is durable when Commit returns. After
	// an error nothing of this node's log may be acknowledged again.
	Commit(sync bool) error
}

// RangeLog is the log of one range: Raft's storage, and the appends to it. It is
// used by one goroutine at a time.
type RangeLog interface {
	raft.Storage
	// Append stages entries; from the first of them on they replace what is there.
	Append(b LogBatch, entries []*pb.Entry) error
	// SetHardState stages term, vote and commit.
	SetHardState(b LogBatch, hs *pb.HardState) error
	// Trim stages the deletion of all entries up to and including index.
	Trim(b LogBatch, index uint64) error
	// Reset stages the deletion of all entries: the log then begins behind index, whose
	// term is term. The hard state stays. It follows a range snapshot.
	Reset(b LogBatch, index, term uint64) error
	// UpTo is how many entries there are up to and including index, and roughly how
	// many bytes they take.
	UpTo(index uint64) (entries, bytes uint64)
	// Bytes is roughly what the range's entries take.
	Bytes() uint64
}

// tailBytesMax bounds the newest entries that a range keeps in memory, within a quarter,
// so that replication and apply seldom read from disk.
const tailBytesMax = 4 << 20

// entryOverhead is added to an entry's data where bytes are counted.
const entryOverhead = 32

// pebbleLog keeps the log in a Pebble of its own, with its WAL synced.
type pebbleLog struct{ db *pebble.DB }

// OpenLog opens or creates the log in dir.
func OpenLog(dir string, o Options) (Log, error) {
	o = o.withDefaults()
	p := o.pebbleOptions()
	p.MemTableSize = o.LogMemTableBytes
	db, err := pebble.Open(dir, p)
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", dir, err)
	}
	return &pebbleLog{db}, nil
}

type pebbleLogBatch struct{ b *pebble.Batch }

func (l *pebbleLog) NewBatch() LogBatch { return &pebbleLogBatch{l.db.NewBatch()} }

func (l *pebbleLog) Close() error { return l.db.Close() }

func (b *pebbleLogBatch) Commit(sync bool) error {
	opt := pebble.NoSync
	if sync {
		opt = pebble.Sync
	}
	if err := b.b.Commit(opt); err != nil {
		return fmt.Errorf("log append: %w", err)
	}
	return nil
}

// Kinds of log keys, after the range id. Durable: docs/format/log.md.
const (
	logHardState byte = 1
	logTruncated byte = 2
	logEntry     byte = 3
)

func logKey(r geo.RangeID, kind byte) []byte {
	b := make([]byte, 0, 16)
	b = binary.BigEndian.AppendUint32(b, uint32(r))
	return append(b, kind)
}

func entryKey(r geo.RangeID, index uint64) []byte {
	return binary.BigEndian.AppendUint64(logKey(r, logEntry), index)
}

// logFormat is the first byte of every value in the log.
const logFormat = 1

// entryHeader is format version, entry type, term, CRC32C of term, type and data.
const entryHeader = 14

func appendEntry(dst []byte, e *pb.Entry) []byte {
	start := len(dst)
	dst = append(dst, logFormat, byte(e.GetType()))
	dst = binary.LittleEndian.AppendUint64(dst, e.GetTerm())
	dst = binary.LittleEndian.AppendUint32(dst, entryCRC(dst[start:], e.Data))
	return append(dst, e.Data...)
}

func entryCRC(head, data []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, data)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // A table, never written.

// ErrLogCorrupt: the log misses what was durable in it, or holds it altered: an entry
// or hard state does not fit its CRC32C, or is gone. The replica is lost (R4).
var ErrLogCorrupt = errors.New("state: log is damaged")

func parseEntry(index uint64, v []byte) (*pb.Entry, error) {
	if len(v) < entryHeader || v[0] != logFormat {
		return nil, fmt.Errorf("%w: index %d", ErrLogCorrupt, index)
	}
	if entryCRC(v[:10], v[entryHeader:]) != binary.LittleEndian.Uint32(v[10:]) {
		return nil, fmt.Errorf("%w: index %d", ErrLogCorrupt, index)
	}
	term := binary.LittleEndian.Uint64(v[2:])
	typ := pb.EntryType(v[1])
	e := &pb.Entry{Index: &index, Term: &term, Type: &typ}
	if len(v) > entryHeader {
		e.Data = append([]byte(nil), v[entryHeader:]...)
	}
	return e, nil
}

// pebbleRangeLog is one range's part of a pebbleLog.
type pebbleRangeLog struct {
	db     *pebble.DB
	id     geo.RangeID
	voters []uint64

	// mu guards the rest: the ship and status goroutines read while the node's
	// scheduler appends.
	mu        sync.Mutex
	hardState *pb.HardState
	// truncated is the last index trimmed away and its term.
	truncated, truncatedTerm uint64
	last                     uint64
	lastTerm                 uint64
	// tail are the newest entries, dense, ending at last.
	tail      []*pb.Entry
	tailBytes int
	bytes     uint64
}

func (l *pebbleLog) Range(r geo.RangeID, voters []uint64) (RangeLog, error) {
	g := &pebbleRangeLog{db: l.db, id: r, voters: voters}
	if err := g.load(); err != nil {
		return nil, fmt.Errorf("load log of range %d: %w", r, err)
	}
	return g, nil
}

func (g *pebbleRangeLog) load() error {
	if v, ok, err := get(g.db, logKey(g.id, logHardState)); err != nil {
		return err
	} else if ok {
		n, err := parseNumbers(v, 3)
		if err != nil {
			return err
		}
		g.hardState = &pb.HardState{Term: &n[0], Vote: &n[1], Commit: &n[2]}
	}
	if v, ok, err := get(g.db, logKey(g.id, logTruncated)); err != nil {
		return err
	} else if ok {
		n, err := parseNumbers(v, 2)
		if err != nil {
			return err
		}
		g.truncated, g.truncatedTerm = n[0], n[1]
	}
	g.last, g.lastTerm = g.truncated, g.truncatedTerm
	it, err := scan(g.db, entryKey(g.id, g.truncated+1), logKey(g.id, logEntry+1))
	if err != nil {
		return err
	}
	for it.Next() {
		index := binary.BigEndian.Uint64(it.Key()[5:])
		e, err := parseEntry(index, it.Value())
		if err == nil && index != g.last+1 {
			err = fmt.Errorf("%w: index %d follows %d", ErrLogCorrupt, index, g.last)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
		g.push(e)
	}
	return it.Close()
}

// appendNumbers and parseNumbers encode the fixed small values of the log.
func appendNumbers(numbers ...uint64) []byte {
	b := []byte{logFormat}
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func parseNumbers(v []byte, count int) ([]uint64, error) {
	if len(v) != 1+8*count+4 || v[0] != logFormat ||
		crc32.Checksum(v[:len(v)-4], castagnoli) != binary.LittleEndian.Uint32(v[len(v)-4:]) {
		return nil, ErrLogCorrupt
	}
	out := make([]uint64, count)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(v[1+8*i:])
	}
	return out, nil
}

// push adds e, whose index is last+1, to the in-memory view.
func (g *pebbleRangeLog) push(e *pb.Entry) {
	g.last, g.lastTerm = e.GetIndex(), e.GetTerm()
	g.tail = append(g.tail, e)
	g.tailBytes += len(e.Data) + entryOverhead
	g.bytes += uint64(len(e.Data) + entryOverhead)
	if g.tailBytes <= tailBytesMax+tailBytesMax/4 {
		return // The rest is moved below: not for every entry.
	}
	drop := 0
	for g.tailBytes > tailBytesMax && drop < len(g.tail)-1 {
		g.tailBytes -= len(g.tail[drop].Data) + entryOverhead
		drop++
	}
	if drop > 0 {
		g.tail = append(g.tail[:0:0], g.tail[drop:]...)
	}
}

func (g *pebbleRangeLog) Append(b LogBatch, entries []*pb.Entry) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch := b.(*pebbleLogBatch).b
	if first := entries[0].GetIndex(); first <= g.last {
		if err := g.cutBack(batch, first); err != nil {
			return err
		}
	}
	var buf []byte
	for _, e := range entries {
		buf = appendEntry(buf[:0], e)
		if err := batch.Set(entryKey(g.id, e.GetIndex()), buf, nil); err != nil {
			return err
		}
		g.push(e)
	}
	return nil
}

// cutBack removes the entries from first on, which a new leader replaces.
func (g *pebbleRangeLog) cutBack(batch *pebble.Batch, first uint64) error {
	if err := batch.DeleteRange(entryKey(g.id, first), entryKey(g.id, g.last+1), nil); err != nil {
		return err
	}
	for len(g.tail) > 0 && g.tail[len(g.tail)-1].GetIndex() >= first {
		size := len(g.tail[len(g.tail)-1].Data) + entryOverhead
		g.tailBytes -= size
		g.bytes -= min(g.bytes, uint64(size))
		g.tail = g.tail[:len(g.tail)-1]
	}
	g.last = first - 1
	term, err := g.term(g.last)
	g.lastTerm = term
	return err
}

func (g *pebbleRangeLog) SetHardState(b LogBatch, hs *pb.HardState) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hardState = hs
	return b.(*pebbleLogBatch).b.Set(logKey(g.id, logHardState),
		appendNumbers(hs.GetTerm(), hs.GetVote(), hs.GetCommit()), nil)
}

func (g *pebbleRangeLog) Trim(b LogBatch, index uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if index <= g.truncated {
		return nil
	}
	term, err := g.term(index)
	if err != nil {
		return err
	}
	batch := b.(*pebbleLogBatch).b
	if err := batch.DeleteRange(entryKey(g.id, g.truncated+1), entryKey(g.id, index+1), nil); err != nil {
		return err
	}
	if err := batch.Set(logKey(g.id, logTruncated), appendNumbers(index, term), nil); err != nil {
		return err
	}
	kept := g.last - index
	total := g.last - g.truncated
	g.bytes = g.bytes / total * kept
	g.truncated, g.truncatedTerm = index, term
	drop := 0
	for drop < len(g.tail) && g.tail[drop].GetIndex() <= index {
		g.tailBytes -= len(g.tail[drop].Data) + entryOverhead
		drop++
	}
	if drop > 0 {
		g.tail = append(g.tail[:0:0], g.tail[drop:]...)
	}
	return nil
}

// Reset implements RangeLog.
func (g *pebbleRangeLog) Reset(b LogBatch, index, term uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch := b.(*pebbleLogBatch).b
	if err := batch.DeleteRange(entryKey(g.id, 0), logKey(g.id, logEntry+1), nil); err != nil {
		return err
	}
	if err := batch.Set(logKey(g.id, logTruncated), appendNumbers(index, term), nil); err != nil {
		return err
	}
	g.truncated, g.truncatedTerm, g.last, g.lastTerm = index, term, index, term
	g.tail, g.tailBytes, g.bytes = nil, 0, 0
	return nil
}

func (g *pebbleRangeLog) UpTo(index uint64) (entries, bytes uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if index = min(index, g.last); index <= g.truncated {
		return 0, 0
	}
	entries = index - g.truncated
	return entries, g.bytes / (g.last - g.truncated) * entries
}

func (g *pebbleRangeLog) Bytes() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes
}

// InitialState implements raft.Storage.
func (g *pebbleRangeLog) InitialState() (*pb.HardState, *pb.ConfState, error) {
	return g.hardState, &pb.ConfState{Voters: g.voters}, nil
}

// Entries implements raft.Storage.
func (g *pebbleRangeLog) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if lo <= g.truncated {
		return nil, raft.ErrCompacted
	}
	if hi > g.last+1 {
		return nil, raft.ErrUnavailable
	}
	var out []*pb.Entry
	var size uint64
	add := func(e *pb.Entry) bool {
		size += uint64(len(e.Data) + entryOverhead)
		if len(out) > 0 && size > maxSize {
			return false
		}
		out = append(out, e)
		return true
	}
	tailFirst := g.last + 1 - uint64(len(g.tail))
	for i := max(lo, tailFirst); lo >= tailFirst && i < hi; i++ {
		if !add(g.tail[i-tailFirst]) {
			return out, nil
		}
	}
	if lo >= tailFirst {
		return out, nil
	}
	it, err := scan(g.db, entryKey(g.id, lo), entryKey(g.id, hi))
	if err != nil {
		return nil, err
	}
	for it.Next() {
		index := binary.BigEndian.Uint64(it.Key()[5:])
		e, err := parseEntry(index, it.Value())
		if want := lo + uint64(len(out)); err == nil && index != want {
			err = fmt.Errorf("%w: index %d where %d belongs", ErrLogCorrupt, index, want)
		}
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		if !add(e) {
			return out, it.Close()
		}
	}
	if err := it.Close(); err != nil {
		return nil, err
	}
	if next := lo + uint64(len(out)); next < hi {
		return nil, fmt.Errorf("%w: no index %d", ErrLogCorrupt, next)
	}
	return out, nil
}

// Term implements raft.Storage.
func (g *pebbleRangeLog) Term(i uint64) (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.term(i)
}

func (g *pebbleRangeLog) term(i uint64) (uint64, error) {
	switch {
	case i == g.truncated:
		return g.truncatedTerm, nil
	case i < g.truncated:
		return 0, raft.ErrCompacted
	case i > g.last:
		return 0, raft.ErrUnavailable
	}
	if first := g.last + 1 - uint64(len(g.tail)); i >= first {
		return g.tail[i-first].GetTerm(), nil
	}
	v, ok, err := get(g.db, entryKey(g.id, i))
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("%w: no index %d", ErrLogCorrupt, i)
	}
	e, err := parseEntry(i, v)
	return e.GetTerm(), err
}

// LastIndex implements raft.Storage.
func (g *pebbleRangeLog) LastIndex() (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last, nil
}

// FirstIndex implements raft.Storage.
func (g *pebbleRangeLog) FirstIndex() (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.truncated + 1, nil
}

// Snapshot implements raft.Storage. A log has none: the replica above it answers from
// the state.
func (g *pebbleRangeLog) Snapshot() (*pb.Snapshot, error) {
	return nil, raft.ErrSnapshotTemporarilyUnavailable
}
