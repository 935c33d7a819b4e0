package scrub

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/state"
)

const (
	periodDefault = 7 * 24 * time.Hour
	graceDefault  = 24 * time.Hour
	// beginDelay is how long after the start the first steps begin, at the latest.
	beginDelay = 10 * time.Second
	// damagePoll is how often the repair looks for chunks that reads found damaged.
	damagePoll = time.Second
)

// Node is what a Scrubber asks of its node. Methods are called from the goroutine of Step.
type Node interface {
	// Applied is the sum of the applied indexes of the node's ranges. While it does not
	// change, nobody writes.
	Applied() uint64
	// NamesComplete reports whether the logs and rows of this node hold every name of a
	// chunk that they should: no replica here is lost, joining, or being fed by a snapshot.
	// If two calls return the same version, names were complete all the time between them.
	NamesComplete() (version uint64, ok bool)
	// Unnamings counts what may have left chunks that nothing names any more. While it does not change,
	// nothing has.
	Unnamings() uint64
	// Settle has what was overwritten or deleted before soon be named neither by durable rows nor by logs, as far as
	// peers do not need those. When it returns, every chunk that was asked for before the call, in order to name it
	// in an entry of a log, is named there, or will not be.
	Settle(ctx context.Context) error
	// DiskFills reports whether the disk has little room left.
	DiskFills() bool
	// Copy puts an intact copy of a chunk here, read from a peer. It is durable after the
	// next Chunks.Sync.
	Copy(ref extent.Ref) error
	// Quarantine takes a damaged store out of use.
	Quarantine(store string, reason error)
	// Repaired reports chunks that were copied from peers and are durable.
	Repaired(chunks, bytes int)
}

// Chunks is the node's chunk store: see extent.Store.
type Chunks interface {
	Scrub(ctx context.Context) (extent.Ref, error)
	Damaged(limit int) []extent.Ref
	Durable(id extent.ChunkID) bool
	Sync(ctx context.Context) error
	BeginRound(full bool)
	Mark(ref extent.Ref) bool
	EndRound()
	Sweep(limit int) (chunks int, bytes int64, err error)
	Compact(ctx context.Context) (int64, error)
	Stats() extent.Stats
}

// Rows reads the durable rows of the state store: see state.Store.
type Rows interface {
	ScanDurable(lower, upper []byte) (kv.Iterator, error)
}

// Space is the state store, where rows that were wiped still take room: see state.Store.
type Space interface {
	Reclaim(ctx context.Context) (worked bool, err error)
}

// Log reads the entries of a range: see state.RangeLog.
type Log interface {
	FirstIndex() (uint64, error)
	LastIndex() (uint64, error)
	Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error)
}

// Range is where the names of chunks of one range are.
type Range struct {
	ID  geo.RangeID
	Log Log
	// Spans hold every row that names any.
	Spans []state.Span
}

// Store is a store whose files are checked: the state store or the log.
type Store struct {
	// Name is its folder in the node's folder.
	Name  string
	Files state.Verifier
}

// Options configures a Scrubber. Node, Chunks, Rows and Clock are required.
type Options struct {
	Node   Node
	Chunks Chunks
	Rows   Rows
	// Space is reclaimed after wipes. Nil means never.
	Space  Space
	Ranges []Range
	// Outboxes reports whether those of Ranges are accounted for: see outbox.Account.
	Outboxes bool
	// Stores are checked in this order, after the chunks.
	Stores []Store
	// RowChunks returns the chunks that a row of a range names. Nil turns the collection of
	// chunks off.
	RowChunks func(id geo.RangeID, key, value []byte) ([]extent.Ref, error)
	Clock     clock.Clock
	// Period is the time within which everything on the disk is read and checked. Zero means 7
	// days; a short one costs reads of the disk.
	Period time.Duration
	// Grace is how long a chunk that nothing has named yet is kept at least. Zero means 24 hours. An
	// upload may not take longer. What was named and is not any more goes within minutes.
	Grace time.Duration
	// CopyBytesPerSecond bounds the repair. It must not be zero.
	CopyBytesPerSecond int
	// Off has Run do nothing: a clone is gone before a scrub would find anything.
	Off bool
	// Registerer receives the metrics until Close. Nil means none.
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Scrubber is the work on the stores of one node, and what it counted.
type Scrubber struct {
	o     Options
	tasks []*task

	cycle   cycle
	rounds  rounds
	collect collection
	account account
	// missing are chunks that a walk found named and not here. Each stays until it is here, or until the end
	// of a walk that did not find it: walks may follow each other faster than repairs, or a day apart. There are
	// at most missingMax; the next walk finds the others.
	missing []extent.Ref

	counts  counts
	metrics []prometheus.Collector
}

// task is one kind of work. step does a little and returns how long to rest.
type task struct {
	due  time.Duration
	step func(ctx context.Context) time.Duration
}

// counts are for metrics. They count from the node's start, where nothing else is said.
type counts struct {
	scrubbedExtents, scrubbedState, scrubbedLog atomic.Uint64 // bytes
	scrubbedChunks, scrubRounds                 atomic.Uint64
	repaired, missing                           atomic.Uint64
	collectedChunks, collectedBytes             atomic.Uint64
	compactedBytes                              atomic.Uint64
	accountedRecords                            atomic.Uint64
	missingRecords, extraRecords                atomic.Uint64 // by the last whole walk
	// Of the present cycle, or the last one that ended: how many bytes it is to read, and what had been read before it.
	cycleBytes, readBefore atomic.Uint64
	// cycleEnded is when the last cycle ended, in milliseconds since 1970; zero before one has.
	cycleEnded atomic.Int64
}

// New returns a Scrubber that has done nothing yet, and registers its metrics.
func New(o Options) (*Scrubber, error) {
	if o.Period == 0 {
		o.Period = periodDefault
	}
	if o.Grace == 0 {
		o.Grace = graceDefault
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Scrubber{o: o, rounds: rounds{full: o.Clock.Mono() + o.Grace, quiet: quietRounds - 1}}
	begin := o.Clock.Mono() + min(beginDelay, o.Period, o.Grace)
	for _, step := range []func(context.Context) time.Duration{s.repairStep, s.scrubStep, s.collectStep, s.compactStep, s.reclaimStep, s.accountStep} {
		s.tasks = append(s.tasks, &task{due: begin, step: step})
	}
	return s, s.register()
}

// Run works until ctx ends.
func (s *Scrubber) Run(ctx context.Context) {
	if s.o.Off {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(s.Step(ctx))
	}
}

// Step does the task that is most overdue, if one is due, and returns for how long after that
// none is due. It is called by one goroutine at a time.
func (s *Scrubber) Step(ctx context.Context) time.Duration {
	first := s.tasks[0]
	for _, t := range s.tasks {
		if t.due < first.due {
			first = t
		}
	}
	if now := s.o.Clock.Mono(); first.due > now {
		return first.due - now
	}
	rest := first.step(ctx)
	first.due = s.o.Clock.Mono() + rest
	return 0
}

// Stats are counts since New.
type Stats struct {
	// Cycles counts the scrub cycles that ended.
	Cycles uint64
	// Missing counts chunks that were named and not here, Repaired those that were copied from
	// a peer.
	Missing, Repaired uint64
}

// Stats may be called from any goroutine.
func (s *Scrubber) Stats() Stats {
	return Stats{s.counts.scrubRounds.Load(), s.counts.missing.Load(), s.counts.repaired.Load()}
}

// Close unregisters the metrics, so that the node can be opened again with the same
// registerer. Run must have returned.
func (s *Scrubber) Close() {
	if s == nil || s.o.Registerer == nil {
		return
	}
	for _, c := range s.metrics {
		s.o.Registerer.Unregister(c)
	}
}
