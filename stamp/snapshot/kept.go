package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
	"antipode/stamp/ranges"
	"antipode/stamp/room"
	"antipode/stamp/state"
)

// A snapshot whose stream breaks off is kept for keptMax as far as it is staged in whole tables, also over a restart of
// this node: beside the plan of install.go the folder then holds the file kept. A stream of the same identity goes on
// from there, any other one begins with an empty folder: rows of two views never lie in one.

// identity names the one view of a range's state that the rows of a snapshot are read from, on its way to one replica.
type identity struct {
	id geo.RangeID
	// source is a number that the sender drew for the view. Zero: it goes on with none.
	source uint64
	// from and to are replicas. term is that of the leader, last the last entry in the view.
	from, to, term uint64
	last           geo.EntryID
}

func identityOf(h Header) identity {
	meta := h.Message.GetSnapshot().GetMetadata()
	return identity{
		id: h.Range, source: h.Source, from: h.Message.GetFrom(), to: h.Message.GetTo(), term: h.Message.GetTerm(),
		last: geo.EntryID{Term: meta.GetTerm(), Index: meta.GetIndex()},
	}
}

// kept is what the file kept records: how far a snapshot is staged. Format: docs/format/snapshot.md.
type kept struct {
	of identity
	// chunks is how many bytes of the file chunks belong to it.
	chunks uint64
	at     state.Position
}

const (
	keptName    = "kept"
	keptVersion = 1
	// keptMax is how long a snapshot that broke off is kept: longer than a sender goes on with it.
	keptMax = 2 * stalledAfter
)

func (k *kept) encode() []byte {
	b := binary.LittleEndian.AppendUint32([]byte{keptVersion}, uint32(k.of.id))
	for _, v := range [...]uint64{
		k.of.source, k.of.from, k.of.to, k.of.term, k.of.last.Index, k.of.last.Term, k.chunks, k.at.Bytes,
	} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, k.at.Tables)
	b = binary.LittleEndian.AppendUint32(b, k.at.Spans)
	b = appendRow(b, k.at.Lower, k.at.Last)
	return binary.LittleEndian.AppendUint32(b, crc.Of(b))
}

// parseKept decodes a record; ok is false for other bytes.
func parseKept(b []byte) (k kept, ok bool) {
	const fixed = 1 + 4 + 8*8 + 2*4
	if len(b) < fixed+4 || b[0] != keptVersion || crc.Of(b[:len(b)-4]) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return k, false
	}
	k.of.id = geo.RangeID(binary.LittleEndian.Uint32(b[1:]))
	for i, v := range [...]*uint64{
		&k.of.source, &k.of.from, &k.of.to, &k.of.term, &k.of.last.Index, &k.of.last.Term, &k.chunks, &k.at.Bytes,
	} {
		*v = binary.LittleEndian.Uint64(b[5+8*i:])
	}
	k.at.Tables, k.at.Spans = binary.LittleEndian.Uint32(b[fixed-8:]), binary.LittleEndian.Uint32(b[fixed-4:])
	rows := 0
	err := eachRow(b[fixed:len(b)-4], func(lower, last []byte) error {
		k.at.Lower, k.at.Last = slices.Clone(lower), slices.Clone(last)
		rows++
		return nil
	})
	return k, err == nil && rows == 1
}

// readKept returns what is kept of a range; ok is false if nothing is.
func (m *Manager) readKept(id geo.RangeID) (k kept, ok bool, err error) {
	b, err := durable.Read(m.o.FS, m.o.FS.PathJoin(m.StagedDir(id), keptName))
	if err != nil {
		return k, false, err
	}
	k, ok = parseKept(b)
	return k, ok && k.of.id == id, nil
}

// keeps reports whether the snapshot is kept when its stream breaks off.
func (in *Incoming) keeps() bool { return in.of.source != 0 && !in.unfit }

// Resume implements Stream.
func (in *Incoming) Resume() (after []byte, keeps bool) { return in.after, in.keeps() }

// record makes durable how far the snapshot is staged, if that is further than the last time.
func (in *Incoming) record() error {
	at := in.staging.Position()
	if !in.keeps() || at.Tables == in.recorded {
		return nil
	}
	if err := errors.Join(in.chunksW.Flush(), in.chunks.Sync()); err != nil {
		return err
	}
	k := kept{of: in.of, chunks: in.named, at: at}
	if err := durable.Replace(in.m.o.FS, in.dir, keptName, k.encode()); err != nil {
		return err
	}
	in.recorded = at.Tables
	return nil
}

// park keeps what is staged of a snapshot whose stream broke off, and reports whether anything is.
func (in *Incoming) park() (ok bool, err error) {
	if !in.keeps() || in.staging == nil {
		return false, nil
	}
	if err := errors.Join(in.staging.Cut(), in.record()); err != nil || in.recorded == 0 {
		return false, err
	}
	in.m.keep(in.id)
	return true, nil
}

// keep has what is staged of a range removed later, unless a stream goes on with it.
func (m *Manager) keep(id geo.RangeID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[id] = m.o.Clock.Mono() + keptMax
}

// dropKept removes what was kept for long enough, and all on a disk that takes no snapshot, apart from the scheduler: there
// may be many files.
func (m *Manager) dropKept(now time.Duration) {
	bare := m.o.Room.Level() >= room.Bare
	m.mu.Lock()
	var old []geo.RangeID
	for id, until := range m.kept {
		if _, taken := m.incoming[id]; !taken && !m.closed && (bare || now >= until) {
			old = append(old, id)
			m.incoming[id] = nil
		}
	}
	m.mu.Unlock()
	slices.Sort(old)
	for _, id := range old {
		m.start(func() {
			err := m.RemoveStaged(id)
			m.mu.Lock()
			delete(m.incoming, id)
			m.mu.Unlock()
			m.o.Logger.Info("range snapshot that broke off is not gone on with; what was staged is removed",
				"range", id, "error", err)
		})
	}
}

// resume goes on with what is kept of the same snapshot; ok is false if nothing is.
func (in *Incoming) resume() (ok bool, err error) {
	k, ok, err := in.m.readKept(in.id)
	if err != nil || !ok || in.of.source == 0 || k.of != in.of {
		return false, err
	}
	in.staging, err = in.m.o.State.ResumeStaging(in.dir, ranges.Spans(in.id), k.at)
	if errors.Is(err, state.ErrNotStaged) {
		return false, nil // Its tables are gone: an ingest took them.
	}
	if err != nil {
		return false, err
	}
	if err := in.copyChunks(k.chunks); err != nil {
		return false, err
	}
	in.after, in.recorded = k.at.Last, k.at.Tables
	return true, nil
}

// copyChunks begins the file of the chunks with the part of the one before that belongs to what is kept.
func (in *Incoming) copyChunks(length uint64) error {
	fs := in.m.o.FS
	old, err := fs.Open(in.chunksPath())
	if err != nil {
		return err
	}
	defer func() { _ = old.Close() }()
	next := in.chunksPath() + ".new"
	if in.chunks, err = fs.Create(next, vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	in.chunksW = bufio.NewWriter(in.chunks)
	copied, err := io.Copy(in.chunksW, io.LimitReader(old, int64(length)))
	if err == nil && uint64(copied) != length {
		err = fmt.Errorf("%s has %d bytes, %d were durable", in.chunksPath(), copied, length)
	}
	in.named = length
	if err = errors.Join(err, in.chunksW.Flush(), in.chunks.Sync()); err != nil {
		return err
	}
	return errors.Join(fs.Rename(next, in.chunksPath()), durable.SyncDir(fs, in.dir))
}
