package room

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
)

// Level is how little room a disk has: see the package text.
type Level byte

// The levels, in this order.
const (
	Plenty Level = iota
	Full
	Bare
	Spent
)

const (
	// ReserveBytes is the default of Options.ReserveBytes.
	ReserveBytes = 512 << 20
	// roomMore is how much more than the reserve must be free before a disk that was full counts as having room.
	roomMore = 512 << 20
	// tightPart is which part of the reserve must be free beside it, or the disk is tight.
	tightPart = 4
	// checkTicks lie between two looks at the disk. What is written between them must fit into the reserve.
	checkTicks = 2
	// reportTicks is how long the report of a peer holds, which repeats it every tick while its disk is full. The
	// in-sync set, by its own timeout, looks after a peer that is silent.
	reportTicks = 20
)

// Options configures a Watch. All fields are required.
type Options struct {
	FS  vfs.FS
	Dir string
	// ReserveBytes of the disk of Dir are to stay free.
	ReserveBytes uint64
	Node         geo.NodeID
	// Peers are the nodes of the stamp; this one may be among them.
	Peers []geo.NodeID
	// Send reports the level of this node to a peer. The report may get lost.
	Send func(to geo.NodeID, l Level)
	// Changed is called when the disk becomes full, and when it has room again.
	Changed func(full bool, reason string)
	// Removed is called, from any goroutine, with each store that was set aside and is removed.
	Removed func(reason string)
	Logger  *slog.Logger
}

// Watch is the level of a node and those of its peers. Tick, Check, Expect and DropAside are called from one goroutine, the
// other methods from any.
type Watch struct {
	o     Options
	level atomic.Uint32
	// looked is the level at the last look, left what was free then, and expected what is written since.
	looked         Level
	left, expected uint64
	// tight: see Tight.
	tight atomic.Bool
	aside aside

	mu    sync.Mutex
	ticks uint64
	peers map[geo.NodeID]report
}

// report is what a peer reported last, and in which tick of this node.
type report struct {
	level Level
	at    uint64
}

// New returns the Watch of a node. The first Tick looks at the disk.
func New(o Options) *Watch { return &Watch{o: o, peers: map[geo.NodeID]report{}} }

// Tick looks at the disk when it is time to, and reports to the peers while it is full.
func (w *Watch) Tick() {
	w.mu.Lock()
	w.ticks++
	due := w.ticks%checkTicks == 1
	w.mu.Unlock()
	was := w.Level()
	if due {
		w.Check()
	}
	if l := w.Level(); l != Plenty || was != Plenty {
		for _, p := range w.o.Peers {
			if p != w.o.Node {
				w.o.Send(p, l)
			}
		}
	}
}

// Check compares the free space of the disk with the reserve. A file system that does not report its free space
// counts as having room.
func (w *Watch) Check() {
	usage, err := w.o.FS.GetDiskUsage(w.o.Dir)
	if err != nil {
		return
	}
	was, left, again := w.looked, usage.AvailBytes, w.o.ReserveBytes+roomMore
	level := levelOf(left, w.o.ReserveBytes)
	if level == Plenty && was != Plenty && left < again {
		level = Full
	}
	w.looked, w.left, w.expected = level, left, 0
	w.level.Store(uint32(level))
	tightBelow := w.o.ReserveBytes + w.o.ReserveBytes/tightPart
	if w.tight.Load() { // It has to be worth the while.
		tightBelow += w.o.ReserveBytes / tightPart
	}
	w.tight.Store(level != Plenty || left < tightBelow)
	switch {
	case was == Plenty && level != Plenty:
		w.o.Logger.Error("disk nearly full: no more writes but deletions until there is room; reads go on",
			"dir", w.o.Dir, "left_bytes", left, "needed_bytes", again)
		w.o.Changed(true, fmt.Sprintf("%d bytes left; writes go on from %d", left, again))
	case was != Plenty && level == Plenty:
		w.o.Logger.Warn("disk has room again; writes go on", "dir", w.o.Dir, "left_bytes", left)
		w.o.Changed(false, fmt.Sprintf("%d bytes left", left))
	case level == Spent && was != Spent:
		w.o.Logger.Error("disk full but for what the node needs to make room: its replicas stand still until there is more",
			"dir", w.o.Dir, "left_bytes", left)
	}
}

// Expect counts bytes that the node takes, which it writes twice: to its log, and to its state. So a burst between two looks
// at a disk that is Full does not use up what the node needs to make room. It never has the level fall.
func (w *Watch) Expect(bytes int) {
	w.expected += 2 * uint64(bytes)
	if was := w.Level(); was != Plenty {
		w.level.Store(uint32(max(was, levelOf(w.left-min(w.left, w.expected), w.o.ReserveBytes))))
	}
}

// levelOf is the level of a disk that was not full before.
func levelOf(left, reserve uint64) Level {
	switch {
	case left >= reserve:
		return Plenty
	case left >= reserve/2:
		return Full
	case left >= reserve/4:
		return Bare
	}
	return Spent
}

// Opens reports whether the disk of a folder has the room that a node needs to open its stores there.
func Opens(fs vfs.FS, dir string, reserve uint64) bool {
	usage, err := fs.GetDiskUsage(dir)
	return err != nil || levelOf(usage.AvailBytes, reserve) != Spent
}

// spentPart is which part of the reserve a replica may still use for its log once the disk is Spent. A node has a replica
// of each range.
const spentPart = 64

// SpentBytes is how many bytes of entries a replica takes in all while the disk is Spent, so that reads go on.
func (w *Watch) SpentBytes() int { return int(w.o.ReserveBytes / spentPart) }

// Level is the level of this node.
func (w *Watch) Level() Level { return Level(w.level.Load()) }

// Tight reports whether what is no part of the stamp, as the bus is, may take no more of the disk: so little is left
// beside the reserve, here, or a peer has reported that its disk is Full. It ends once twice that is left and no disk is
// Full. So the bus does not use up what the stamp needs.
func (w *Watch) Tight() bool {
	return w.tight.Load() || slices.ContainsFunc(w.o.Peers, func(n geo.NodeID) bool { return w.Of(n) != Plenty })
}

// Full reports whether the node takes no writes but deletions because its disk is nearly full.
func (w *Watch) Full() bool { return w.Level() != Plenty }

// Take takes the report of a peer.
func (w *Watch) Take(from geo.NodeID, l Level) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peers[from] = report{min(l, Spent), w.ticks}
}

// Of is the level of a node of the stamp: Plenty for one that did not report lately.
func (w *Watch) Of(n geo.NodeID) Level {
	if n == w.o.Node {
		return w.Level()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r, ok := w.peers[n]; ok && w.ticks-r.at <= reportTicks {
		return r.level
	}
	return Plenty
}

// Disk returns the size of the disk and what is free, zero where not known, and the reserve.
func (w *Watch) Disk() (size, free, reserve uint64) {
	usage, _ := w.o.FS.GetDiskUsage(w.o.Dir) // Zero with an error.
	return usage.TotalBytes, usage.AvailBytes, w.o.ReserveBytes
}

// Spare is how much may be used before the disk counts as full, were it full before; known is false if that is not known.
func (w *Watch) Spare() (free uint64, known bool) {
	size, free, reserve := w.Disk()
	return free - min(free, reserve+roomMore), size > 0
}
