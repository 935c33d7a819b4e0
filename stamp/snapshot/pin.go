package snapshot

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// While a peer is fed, the log of its range is kept above the index of the snapshot, then above what the peer has of
// the log, until it is in sync: else it would need another snapshot, and another one after that. So that the log stays
// within its bound, its growth is slowed: the fuller it is, the longer commands wait (Slow). The bound is pinFactor
// times LogBytesMax, or a quarter of the room on the disk, the log included, if that is more: the state grows, too,
// since the view keeps what is overwritten. Nobody waits for a peer that makes no progress, and past the bound, or
// without room on the disk, nothing is kept for it.
const (
	pinFactor = 4
	roomPart  = 4
	// entriesMax bounds the entries that are kept: each takes 16 bytes of memory.
	entriesMax = 32 << 20
	// slowFrom is the part of the bound from which on writers are slowed.
	slowFrom = 0.5
	// slowRate is the part of LogBytesMax by which the log may grow in a second at the bound; slowMax is how long commands
	// wait at most after a group.
	slowRate = 1. / 256
	slowMax  = time.Second
	// slowFor is how long after the last progress of the peer writers are slowed.
	slowFor = 10 * time.Second
	// followHalf is the time in which the bound halves while the peer follows: a peer that is slower than the writers
	// comes in sync, too.
	followHalf = 5 * time.Minute
	// measureAfter is how often the log is measured.
	measureAfter = 100 * time.Millisecond
)

// pinned is what is kept of the log for a snapshot, and for how long; scheduler only.
type pinned struct {
	// pin is the index above which the log is kept; 0: not any more.
	pin uint64
	// measured is when measure looked last, followed since when the peer follows.
	measured, followed time.Duration
	// match is what the following peer had, of the log, at its last progress, behind the bytes that it lacked.
	match, behind uint64
	// lacks is how many bytes of the log it lacks now.
	lacks uint64
	// full is how much of the bound is taken, slow from 0 to 1 how much writers are slowed.
	full, slow float64
	// reported: it was reported that writers are slowed.
	reported bool
}

// follows begins to keep what the peer lacks of the log.
func (p *pinned) follows(now time.Duration) {
	p.followed, p.behind, p.lacks = now, math.MaxUint64, math.MaxUint64
}

// slowness is how much writers are slowed when a part of the bound is full.
func slowness(full float64) float64 { return min(max((full-slowFrom)/(1-slowFrom), 0), 1) }

// follow records what a following peer has of the log, and how much it lacks, and returns the bound of that.
func (o *outgoing) follow(now time.Duration, match, lacks uint64, bound float64) float64 {
	if match > o.match && o.full < 1 || lacks < o.behind { // Else it does not come closer, however slow the writers are.
		o.progressed = now
	}
	o.match, o.lacks, o.behind = match, lacks, min(o.behind, lacks)
	return bound * math.Exp2(-float64(now-o.followed)/float64(followHalf))
}

// measure compares what is kept of the log with its bound.
func (m *Manager) measure(o *outgoing, now time.Duration) {
	if o.pin == 0 || o.measured != 0 && now-o.measured < measureAfter {
		return
	}
	o.measured = now
	log := m.o.Node.Log(o.id)
	held, bound := log.Bytes(), float64(pinFactor*m.o.LogBytesMax)
	free, known := m.o.Room.Spare()
	if known {
		bound = max(bound, float64(held+free)/roomPart)
	}
	entries, _ := log.UpTo(math.MaxUint64)
	size := held
	if o.phase == following {
		match, _ := m.o.Node.Range(o.id).Replica().Match(o.to)
		o.pin = max(o.pin, match)
		_, below := log.UpTo(o.pin)
		held -= min(held, below)
		bound = o.follow(now, match, held, bound)
	}
	o.full = max(float64(held)/max(bound, 1), float64(entries)/entriesMax)
	slow := slowness(o.full)
	idle := now - o.progressed
	if idle >= slowFor {
		slow = 0
	}
	m.slow(o, slow)
	switch {
	case idle >= stalledAfter:
		m.lose(o, "it makes no progress")
	case idle >= slowFor && o.full >= 1:
		m.lose(o, "it makes no progress, and the log is at its bound")
	case known && free == 0 && size > pinFactor*m.o.LogBytesMax:
		m.lose(o, "the disk has no room")
	}
}

// slow sets how much the writers of the range are slowed.
func (m *Manager) slow(o *outgoing, slow float64) {
	o.slow = slow
	m.mu.Lock()
	m.slowing[o.id] = slow
	m.mu.Unlock()
	if slow > 0 && !o.reported {
		o.reported = true
		m.o.Node.Slowed(o.id, o.to, true, fmt.Sprintf(
			"they write faster than replica %d is fed: the log that is kept for it is at %.0f%% of its bound", o.to, 100*o.full))
	}
}

// lose keeps the log for the peer no longer.
func (m *Manager) lose(o *outgoing, why string) {
	m.o.Logger.Warn("log not kept any more for a replica that is fed by a snapshot; it may need another one",
		"range", o.id, "to", o.to, "why", why)
	m.unpin(o)
}

// unpin ends what is done for the peer.
func (m *Manager) unpin(o *outgoing) {
	o.pin = 0
	m.slow(o, 0)
	m.mu.Lock()
	delete(m.slowing, o.id)
	m.mu.Unlock()
	if o.reported {
		o.reported = false
		m.o.Node.Slowed(o.id, o.to, false, "")
	}
}

// Pin returns the index above which the log of a range is kept for a peer that is being fed by a snapshot; ok is
// false if there is no such peer.
func (m *Manager) Pin(id geo.RangeID) (index uint64, ok bool) {
	o := m.outgoing[id]
	if o == nil || o.pin == 0 {
		return 0, false
	}
	return o.pin, true
}

// Slow returns how long the next commands of a range wait after a group of some bytes: see ranges.Options.
func (m *Manager) Slow(id geo.RangeID, bytes int) time.Duration {
	o := m.outgoing[id]
	if o == nil || o.slow == 0 {
		return 0
	}
	seconds := o.slow * o.slow * float64(bytes) / (slowRate * float64(m.o.LogBytesMax))
	return min(time.Duration(seconds*float64(time.Second)), slowMax)
}

// Describe implements prometheus.Collector.
func (m *Manager) Describe(ch chan<- *prometheus.Desc) { ch <- slowedDesc() }

func slowedDesc() *prometheus.Desc {
	return prometheus.NewDesc("antipode_writes_slowed",
		"How much writers of a range are slowed for a replica that is fed by a snapshot; absent while none is.",
		[]string{"range"}, nil)
}

// Collect implements prometheus.Collector.
func (m *Manager) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, slow := range m.slowing {
		ch <- prometheus.MustNewConstMetric(slowedDesc(), prometheus.GaugeValue, slow, fmt.Sprint(id))
	}
}
