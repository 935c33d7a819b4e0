package state

import (
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Shared is what the stores of one process share: block cache and file cache.
type Shared struct {
	cache *pebble.Cache
	files *pebble.FileCache
	freed freed
}

// NewShared returns caches of the given number of bytes and open files.
func NewShared(cacheBytes int64, openFiles int) *Shared {
	return &Shared{cache: pebble.NewCache(cacheBytes), files: pebble.NewFileCache(4, openFiles)}
}

// CacheBytes returns how many bytes of blocks the block cache holds now.
func (s *Shared) CacheBytes() int64 { return s.cache.Metrics().Size }

// Close releases the caches. The stores must be closed before.
func (s *Shared) Close() {
	s.files.Unref()
	s.cache.Unref()
}

// Options configures the stores of a node.
type Options struct {
	// FS is the file system. Nil means the machine's.
	FS vfs.FS
	// Shared caches. Nil gives each store separate caches.
	Shared *Shared
	// StateMemTableBytes is the size of the state store's memtable, which is taken out
	// of the cache's bytes. Zero means 16 MiB; a small one makes more flushes, a large one a longer replay.
	StateMemTableBytes uint64
	// LogSegmentBytes is the size of a segment of the segment log, rounded up to pages.
	// Zero means 8 MiB. Each change costs a synced rename, and the first of a node some
	// zeros, so small ones cost more; large ones free their space late and hold the
	// scheduler longer when they are filled.
	LogSegmentBytes int64
	// Rand draws the incarnation of each segment, 8 bytes. Nil means crypto/rand. A
	// source that repeats itself lets leftovers of a former use pass for records.
	Rand io.Reader
	// Eased is called when Store.Pressed was true and may not be any more, from any goroutine: it must not block. Nil means
	// that nobody asks Pressed: writes then wait as soon as it would be true.
	Eased func()
	// ReadOnly opens without changing anything on disk.
	ReadOnly bool
	// Logger takes the stores' errors. Nil means slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.StateMemTableBytes == 0 {
		o.StateMemTableBytes = 16 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// pebbleOptions are those of the state store.
func (o Options) pebbleOptions() *pebble.Options {
	p := &pebble.Options{
		FS:                          o.FS,
		FormatMajorVersion:          formatMajorVersion,
		ReadOnly:                    o.ReadOnly,
		ErrorIfNotExists:            o.ReadOnly,
		Logger:                      &pebbleLogger{l: o.Logger},
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       levelFilesMax,
		LBaseMaxBytes:               64 << 20,
		MemTableStopWritesThreshold: memTablesMax,
		MaxOpenFiles:                512,
	}
	if o.Eased != nil {
		p.L0StopWritesThreshold *= 2
		p.MemTableStopWritesThreshold *= 2
	}
	if o.Shared != nil {
		p.Cache, p.FileCache = o.Shared.cache, o.Shared.files
	} else {
		p.CacheSize = 8 << 20
	}
	return p
}

// pebbleLogger passes on what went wrong and drops Pebble's progress reports: a
// healthy node is quiet. Pebble tries a failed flush again at once, for ever, so of the
// errors of a store only the 1st, 2nd, 4th, 8th ... are logged.
type pebbleLogger struct {
	l      *slog.Logger
	errors atomic.Uint64
}

func (*pebbleLogger) Infof(string, ...any) {}

func (p *pebbleLogger) Errorf(format string, args ...any) {
	if n := p.errors.Add(1); n&(n-1) == 0 {
		p.l.Error("store error", "detail", sprintf(format, args...), "errors", n)
	}
}

// Fatalf is called where Pebble cannot go on, such as after a failed WAL sync.
// Nothing may be acknowledged after it (R4), so the process ends here and
// recovers from disk.
func (p *pebbleLogger) Fatalf(format string, args ...any) {
	msg := sprintf(format, args...)
	p.l.Error("store failed; the process ends and recovers from its log at the next start", "detail", msg)
	panic("state: store failed: " + msg)
}
