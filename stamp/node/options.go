package node

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
	"antipode/stamp/feature"
	"antipode/stamp/ranges"
	"antipode/stamp/room"
	"antipode/stamp/route"
	"antipode/stamp/skew"
	"antipode/stamp/state"
)

// Options configures a node.
type Options struct {
	Location geo.Location
	ID       geo.NodeID
	// Peers are the ids of all nodes of the stamp, this one included.
	Peers []geo.NodeID
	// Sites are the known domains of the nodes. The placement of a new stamp depends on them, see
	// ranges.Place, and nothing of an old stamp but PlacementWarnings.
	Sites []ranges.Site
	// Route is the table of the stamp's ranges. Nil means that of a new stamp.
	Route *route.Table
	// Dir is the data folder: log, state and extents below it.
	Dir string
	// State configures the state store and the log; its FS holds all files of the node.
	State     state.Options
	Clock     clock.Clock
	Transport Transport
	// Seed feeds the node's randomness: election spread, incarnations of extents and
	// log segments.
	Seed uint64
	// AskFarClock: see skew.Exchange.AskFar.
	AskFarClock func(done func(skew.Own, error))
	// Parity of timestamps (R6).
	Parity geo.Timestamp
	// Tick, ElectionTicks, InSyncTimeout: see replica.Options.
	Tick          time.Duration
	ElectionTicks int
	InSyncTimeout time.Duration
	// CloseInterval returns after how long an idle range commits a closed record.
	CloseInterval func(geo.RangeID) time.Duration
	// FlushEntries is after how many applied entries the state is flushed, so that
	// the log can be trimmed and a restart replays little. Zero means 20,000.
	FlushEntries uint64
	// LogBytesMax bounds what a range's log keeps for a peer that is behind, in bytes:
	// beyond it the peer is fed by a range snapshot, while which the log may grow further: see
	// snapshot.Manager. Zero means 256 MiB. A small one makes snapshots of short absences.
	LogBytesMax uint64
	// SnapshotFragmentBytes: see snapshot.Options.FragmentBytes.
	SnapshotFragmentBytes int
	// RowChunks returns the payload chunks that a row of clients' data names. It may be
	// called from any goroutine. Nil turns range snapshots off, and LogBytesMax with them:
	// a replica must have the payload that its state names (R3).
	RowChunks func(key, value []byte) ([]extent.Ref, error)
	// ChunkSpans are the spans of clients' keys in a service outside of which RowChunks finds none: the collection of
	// chunks reads no other rows. Nil means that any row may name one.
	ChunkSpans func(geo.Service) []geo.Span
	// FetchBytesPerSecond bounds how fast the payload that a range snapshot names is
	// fetched from peers. Zero means 64 MiB/s.
	FetchBytesPerSecond int
	// ReserveBytes of the disk of Dir stay free: with less the node takes no writes, until 512 MiB
	// more are free. The reserve is what the node itself needs to make room. Zero means 512 MiB.
	ReserveBytes uint64
	// Commands decodes the commands that other nodes forward to this one as the leader of a
	// range. Nil means none.
	Commands ranges.Commands
	// Understands, Fence and Levels: see ranges.Options.
	Understands func(entry []byte) error
	Fence       *ranges.Fence
	Levels      *feature.Gate
	// ScrubPeriod is the time in which every chunk, table and log segment is read and
	// checked once. Zero means 7 days; a short one costs reads of the disk.
	ScrubPeriod time.Duration
	// CollectGrace is how long a chunk that nothing names is kept at least: see scrub.Options. Zero
	// means 24 hours. An upload may not take longer.
	CollectGrace time.Duration
	// RestartAfter is how long a Stamp waits before it opens a failed node again. Each further failure
	// in a row doubles it. Zero means 1 s.
	RestartAfter time.Duration
	// Base: see extent.Options. With one the node is a clone's (server/clone): it acknowledges alone, and does not scrub.
	Base extent.Base
	// Registerer receives the metrics of the node; Close removes them. Nil means none.
	Registerer prometheus.Registerer
	// OnCommit takes commit latencies by range. May be nil.
	OnCommit func(geo.RangeID, time.Duration)
	// OnApplied gets every entry after it was applied here: see ranges.Options. May be nil.
	OnApplied func(geo.RangeID, ranges.Applied)
	// OnEvent gets the events of the node's replicas and stores, from any goroutine of the node, the
	// scheduler included: it must not block. May be nil.
	OnEvent func(Event)
	// Go runs f beside the caller, which may be the scheduler: all work of a node outside of Pass is
	// started through it. Close waits for f to end. Nil means a goroutine. A simulation runs f
	// itself, at a time that it chooses.
	Go func(f func())
	// Stepped makes a Pass wait for the flush of the state that it starts, so that the next pass
	// depends on no other goroutine. For the same reason the scrub leaves out the tables of the
	// state, and Survey and Reform run in their caller's goroutine. It is for simulations: it stalls
	// the scheduler.
	Stepped bool
	Logger  *slog.Logger
}

// WithDefaults returns a copy in which every zero field has its default.
func (o Options) WithDefaults() Options {
	o.Tick = cmp.Or(o.Tick, 100*time.Millisecond)
	o.ElectionTicks = cmp.Or(o.ElectionTicks, 10)
	o.ReserveBytes = cmp.Or(o.ReserveBytes, room.ReserveBytes)
	o.FlushEntries = cmp.Or(o.FlushEntries, 20_000)
	o.LogBytesMax = cmp.Or(o.LogBytesMax, 256<<20)
	o.FetchBytesPerSecond = cmp.Or(o.FetchBytesPerSecond, 64<<20)
	o.RestartAfter = cmp.Or(o.RestartAfter, time.Second)
	if o.State.FS == nil {
		o.State.FS = vfs.Default
	}
	if o.Route == nil {
		o.Route = route.First()
	}
	if o.Levels == nil {
		o.Levels = feature.NewGate(feature.Known)
	}
	if o.Go == nil {
		o.Go = func(f func()) { go f() }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = o.Logger.With("location", o.Location, "node", o.ID)
	return o
}

// takesSnapshots reports whether the node sends and takes range snapshots.
func (o *Options) takesSnapshots() bool {
	_, ok := o.Transport.(SnapshotTransport)
	return ok && o.RowChunks != nil
}
