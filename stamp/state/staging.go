package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/internal/plantedbugs"
)

// Span is the keys in [Lower, Upper).
type Span struct{ Lower, Upper []byte }

// ErrNotStaged: a row is out of order or outside the spans it was to replace.
var ErrNotStaged = errors.New("state: row does not fit the staged spans")

// stagedTableBytes is about how long a staged table becomes.
const stagedTableBytes = 32 << 20

// Staging writes, beside the state store, the tables that replace whole spans of it. Each table
// begins with a tombstone over its part of the span. So tables alone, ingested together, remove the
// old rows and bring the new ones. An excise would do the first too, but take the old rows from
// open snapshots. It is used by one goroutine.
type Staging struct {
	fs    vfs.FS
	dir   string
	opts  sstable.WriterOptions
	bytes uint64 // of one table
	spans []Span // those not yet finished, in order
	// finished is how many others there are.
	finished uint32

	// w is the table under way, nil if there is none. lower is where it begins.
	w     *sstable.Writer
	lower []byte
	last  []byte
	paths []string
	total uint64
	// at is the position behind the last whole table.
	at Position
}

// Position is how far a staging has come in whole tables. They are durable once their folder is synced, and
// Store.ResumeStaging goes on from there.
type Position struct {
	// Tables are how many they are, and Spans how many spans they finish.
	Tables, Spans uint32
	// Lower is where the next table begins, Last the key of the last row in the tables.
	Lower, Last []byte
	// Bytes is how many bytes of keys and values they hold.
	Bytes uint64
}

// NewStaging begins to write the tables into dir, which exists and is empty. The spans
// are ascending and disjoint.
func (s *Store) NewStaging(dir string, spans []Span) (*Staging, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return &Staging{
		fs: s.fs, dir: dir, opts: s.tableOptions(), bytes: stagedTableBytes, spans: spans, lower: spans[0].Lower,
	}, nil
}

// ResumeStaging goes on with a staging of the same spans, of which dir has the tables up to a position.
func (s *Store) ResumeStaging(dir string, spans []Span, at Position) (*Staging, error) {
	g, err := s.NewStaging(dir, spans)
	if err != nil {
		return nil, err
	}
	if int(at.Spans) > len(spans) {
		return nil, fmt.Errorf("%w: %d of %d spans are finished", ErrNotStaged, at.Spans, len(spans))
	}
	for range at.Tables {
		path := g.nextPath()
		if _, err := g.fs.Stat(path); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotStaged, err)
		}
		g.paths = append(g.paths, path)
	}
	g.spans, g.finished, g.at = spans[at.Spans:], at.Spans, at
	g.lower, g.last, g.total = at.Lower, bytes.Clone(at.Last), at.Bytes
	return g, nil
}

// Add adds a row; rows are added in ascending order. Key and value are copied.
func (g *Staging) Add(key, value []byte) error {
	for len(g.spans) > 0 && bytes.Compare(key, g.spans[0].Upper) >= 0 {
		if err := g.finishSpan(); err != nil {
			return err
		}
	}
	if len(g.spans) == 0 || bytes.Compare(key, g.spans[0].Lower) < 0 || g.last != nil && bytes.Compare(key, g.last) <= 0 {
		return fmt.Errorf("%w: key %x", ErrNotStaged, key)
	}
	if g.w != nil && g.w.Raw().EstimatedSize() >= g.bytes {
		if err := g.cut(key); err != nil {
			return err
		}
	}
	if err := g.begin(); err != nil {
		return err
	}
	g.last = append(g.last[:0], key...)
	g.total += uint64(len(key) + len(value))
	return g.w.Set(key, value)
}

// Bytes is how many bytes of keys and values were added.
func (g *Staging) Bytes() uint64 { return g.total }

// Position is how far the staging has come in whole tables.
func (g *Staging) Position() Position { return g.at }

// Cut finishes the table under way behind the last row, so that Position is there.
func (g *Staging) Cut() error {
	if g.w == nil {
		return nil
	}
	return g.cut(append(bytes.Clone(g.last), 0))
}

// cut finishes the table under way; the next one begins at a key.
func (g *Staging) cut(key []byte) error {
	if err := g.finishTable(key); err != nil {
		return err
	}
	g.lower = bytes.Clone(key)
	g.mark()
	return nil
}

// mark sets the position behind the table that was finished.
func (g *Staging) mark() {
	g.at = Position{
		Tables: uint32(len(g.paths)), Spans: g.finished,
		Lower: bytes.Clone(g.lower), Last: bytes.Clone(g.last), Bytes: g.total,
	}
}

func (g *Staging) nextPath() string {
	return g.fs.PathJoin(g.dir, fmt.Sprintf("%06d.sst", len(g.paths)))
}

// begin opens a table where none is under way.
func (g *Staging) begin() error {
	if g.w != nil {
		return nil
	}
	path := g.nextPath()
	f, err := g.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("stage table: %w", err)
	}
	g.paths = append(g.paths, path)
	g.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), g.opts)
	return nil
}

// finishTable syncs the table under way; it stands for everything from lower to upper.
func (g *Staging) finishTable(upper []byte) error {
	if err := g.begin(); err != nil {
		return err
	}
	w := g.w
	g.w = nil
	var err error
	if !plantedbugs.Planted(plantedbugs.SnapshotOverOldRows) {
		err = w.DeleteRange(g.lower, upper)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("stage table: %w", err)
	}
	return nil
}

func (g *Staging) finishSpan() error {
	if err := g.finishTable(g.spans[0].Upper); err != nil {
		return err
	}
	g.finished++
	if g.spans = g.spans[1:]; len(g.spans) > 0 {
		g.lower = g.spans[0].Lower
	}
	g.mark()
	return nil
}

// Finish completes the tables; they are durable when it returns.
func (g *Staging) Finish() error {
	for len(g.spans) > 0 {
		if err := g.finishSpan(); err != nil {
			return err
		}
	}
	d, err := g.fs.OpenDir(g.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close ends a staging that was not finished. It removes no file.
func (g *Staging) Close() error {
	if g.w == nil {
		return nil
	}
	w := g.w
	g.w = nil
	return w.Close()
}

// Ingest replaces the spans of a finished staging, in one step that is durable when it
// returns: a crash leaves the old rows or the new ones. Its files are moved into the store. After an error
// the store must not be used. Commits go on meanwhile, except while the change is written to the manifest: they are
// made visible in one order.
func (s *Store) Ingest(g *Staging) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	// Rows of the spans in a memtable have to be flushed first. Within the ingest commits would wait for that, too.
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("flush before an ingest: %w", err)
	}
	if err := s.db.Ingest(context.Background(), g.paths); err != nil {
		return fmt.Errorf("ingest %d staged tables: %w", len(g.paths), err)
	}
	return nil
}
