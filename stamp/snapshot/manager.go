package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/room"
	"antipode/stamp/state"
)

// Stream is the sender's end of a range snapshot. It is used by one goroutine.
type Stream interface {
	// Send transfers the next fragment. The receiver acknowledges a fragment when it is
	// written; the transport holds a few unacknowledged ones in flight, and Send blocks while
	// there are no fewer. An error ends the stream.
	Send(ctx context.Context, f Fragment) error
	// Resume returns the key up to which the receiver has the rows of the header's source, from a stream that broke
	// off: only those behind it are sent. Empty: all are. keeps reports whether it keeps rows if this one breaks off.
	Resume() (after []byte, keeps bool)
	// Finish waits until the receiver has fetched the payload and installed the snapshot,
	// durably. It may take long; progressed is called now and then while it goes on.
	Finish(ctx context.Context, progressed func()) error
	// Close ends the stream. Without a Finish that returned nil the receiver drops what it
	// has, unless it was about to install it or keeps it: see Resume.
	Close()
}

// Node is what a Manager asks of its node. Methods are called by the scheduler, or by any
// goroutine if their comment ends so.
type Node interface {
	// Range returns a range that is here, nil for any other. Any goroutine.
	Range(id geo.RangeID) *ranges.Range
	// Log returns the log of a range that is here. Any goroutine.
	Log(id geo.RangeID) state.RangeLog
	// Placed returns the nodes of a range. Any goroutine.
	Placed(id geo.RangeID) []geo.NodeID
	// NodeOf returns the node of a replica; 0 for none.
	NodeOf(id geo.RangeID, r geo.ReplicaID) geo.NodeID
	// IsMember reports whether the replica of a range here is r, and takes part.
	IsMember(id geo.RangeID, r geo.ReplicaID) bool
	// Accepts returns why a snapshot with this header may not be received from a node; nil if
	// it may. Any goroutine.
	Accepts(from geo.NodeID, h Header) error
	// Open opens a stream to another node. Any goroutine.
	Open(to geo.NodeID, h Header) (Stream, error)
	// Fetch reads a payload chunk from a peer, at the speed for such transfers, and puts it
	// here. It asks the node first before the other peers. The chunk is durable after the next
	// Chunks.Sync. Any goroutine.
	Fetch(ctx context.Context, ref extent.Ref, first geo.NodeID) error
	// Replaced reports that the state of a range was replaced and is durable up to an index.
	Replaced(id geo.RangeID, durable uint64)
	// Installed reports a snapshot that was installed here, Sent one that was installed at a
	// peer.
	Installed(id geo.RangeID)
	Sent(id geo.RangeID, to geo.ReplicaID)
	// Slowed reports that the writers of a range are slowed for a snapshot to a replica, or not any more.
	Slowed(id geo.RangeID, to geo.ReplicaID, slowed bool, reason string)
	// Wake makes the scheduler do a pass soon. Any goroutine.
	Wake()
	// Later has f run on the scheduler, in its next pass. An error takes the node out of service. Any goroutine.
	Later(f func() error)
}

// Chunks is the node's chunk store: see extent.Store.
type Chunks interface {
	Sync(ctx context.Context) error
	// Pin keeps every chunk until the release.
	Pin() (release func())
}

// Options configures a Manager. All fields without a default are required.
type Options struct {
	Node Node
	// Dir is the folder in FS in which incoming snapshots are staged.
	FS  vfs.FS
	Dir string
	// Room is that of the node's disk.
	Room   *room.Watch
	State  *state.Store
	Log    state.Log
	Chunks Chunks
	// RowChunks returns the payload chunks that a row of a range names. Nil means that the
	// node neither sends nor takes snapshots.
	RowChunks func(id geo.RangeID, key, value []byte) ([]extent.Ref, error)
	// LogBytesMax is what the log of a range keeps for a peer that is behind: see pin.go.
	LogBytesMax uint64
	// FragmentBytes bounds the rows of a fragment, so that a few in flight take little memory. Zero means 1 MiB.
	FragmentBytes int
	// Random draws the numbers of sources; scheduler only.
	Random func() uint64
	Clock  clock.Clock
	// Go runs f on a goroutine.
	Go     func(f func())
	Logger *slog.Logger
}

// Manager sends and receives the range snapshots of a node. Methods are called from the
// node's scheduler unless they say otherwise.
type Manager struct {
	o Options
	// ctx ends transfers; background counts them.
	ctx        context.Context //nolint:containedctx // The node's: it ends at its Close or failure.
	background sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// incoming are the snapshots being received; nil stands for a reserved folder. arrived are
	// those that the scheduler has to install. kept are those that broke off and may go on, with the time until which.
	// ended are outgoing streams that ended. slowing is how much the writers of a range are slowed, from 0 to 1, while
	// a peer of it is fed. Guarded by mu.
	incoming map[geo.RangeID]*Incoming
	arrived  []*Incoming
	kept     map[geo.RangeID]time.Duration
	ended    []sent
	slowing  map[geo.RangeID]float64

	// Below: scheduler only. pass has arrived and ended as of the current pass. installing are
	// those that arrived and are not installed or refused yet. outgoing is the newest one of each range.
	pass struct {
		arrived []*Incoming
		ended   []sent
	}
	installing map[geo.RangeID]*Incoming
	outgoing   map[geo.RangeID]*outgoing
}

// NewManager returns a Manager without transfers. It works until ctx ends.
func NewManager(ctx context.Context, o Options) *Manager {
	o.FragmentBytes = cmp.Or(o.FragmentBytes, fragmentBytesMax)
	return &Manager{
		o: o, ctx: ctx, incoming: map[geo.RangeID]*Incoming{}, kept: map[geo.RangeID]time.Duration{},
		slowing: map[geo.RangeID]float64{}, installing: map[geo.RangeID]*Incoming{}, outgoing: map[geo.RangeID]*outgoing{},
	}
}

// Close waits until all transfers have ended, which they do after ctx has. No pass may follow. It may be called
// again, and for a nil Manager.
func (m *Manager) Close() {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.background.Wait()
	for id, o := range m.outgoing {
		if err := o.release(); err != nil {
			m.o.Logger.Warn("view of the state not closed", "range", id, "error", err)
		}
	}
}

// Receiving reports whether a snapshot of any range is being received. It may be called from
// any goroutine.
func (m *Manager) Receiving() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.incoming) > 0
}

// BeginPass takes the transfers that arrived or ended since the last pass.
func (m *Manager) BeginPass() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass.arrived, m.pass.ended = m.arrived, m.ended
	m.arrived, m.ended = nil, nil
	for _, in := range m.pass.arrived {
		in.owned = true
	}
}

// StagedDir is the folder of the staged files of a range.
func (m *Manager) StagedDir(id geo.RangeID) string {
	return m.o.FS.PathJoin(m.o.Dir, fmt.Sprintf("r%d", id))
}

// start runs f on a goroutine that Close waits for.
func (m *Manager) start(f func()) {
	m.background.Add(1)
	m.o.Go(func() {
		defer m.background.Done()
		f()
	})
}
