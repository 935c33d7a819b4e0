package scrub

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"antipode/stamp/extent"
	"antipode/stamp/state"
)

// A scrub cycle reads, in this order: every chunk, every table of the state store, every
// segment of the log. It takes about scrubShare of Options.Period; the rest is for nodes that
// were down. While clients write, it reads only as fast as that requires. On a node at rest it
// reads at idleBytes at least, so that a small store is soon done. It never reads faster than
// bytesMax: a store that is too large for that takes longer than the period, and the node
// logs it.
//
// A restart of the process begins a new cycle.
const (
	scrubShare = 0.8
	idleBytes  = 4 << 20  // per second
	bytesMax   = 64 << 20 // per second
	// restLeast is the shortest rest: shorter ones are added up until they reach it, since
	// timers are not much finer.
	restLeast = 10 * time.Millisecond
)

// cycle is how far a scrub cycle has come.
type cycle struct {
	began time.Duration
	// rate is the speed that the period requires, in bytes per second; zero before it began.
	rate float64
	// owed is the sum of the rests that are due and not taken yet.
	owed time.Duration
	// chunks is set when all chunks were read. Then the stores follow, one after the other:
	// store is the index of the current one, and files are those of it that remain, valid if
	// listed.
	chunks bool
	store  int
	files  []state.File
	listed bool
	// applied is Node.Applied at the last step.
	applied uint64
	// late: the period requires more than bytesMax.
	late bool
}

func (s *Scrubber) scrubStep(ctx context.Context) time.Duration {
	c := &s.cycle
	if c.rate == 0 {
		s.beginCycle()
	}
	if !c.chunks {
		return s.scrubChunk(ctx)
	}
	for c.store < len(s.o.Stores) {
		store := s.o.Stores[c.store]
		if !c.listed {
			var err error
			if c.files, err = store.Files.Files(); err != nil {
				s.o.Logger.Warn("cannot list the files of a store to scrub them; tried again", "store", store.Name, "error", err)
				return time.Minute
			}
			c.listed = true
		}
		if len(c.files) > 0 {
			f := c.files[0]
			c.files = c.files[1:]
			s.scrubFile(store, f)
			return s.scrubRest(f.Bytes)
		}
		c.store++
		c.listed = false
	}
	return s.endCycle()
}

func (s *Scrubber) beginCycle() {
	c := &s.cycle
	total := uint64(s.o.Chunks.Stats().FileBytes)
	for _, store := range s.o.Stores {
		files, err := store.Files.Files()
		if err != nil {
			continue // The step that reads them logs it.
		}
		for _, f := range files {
			total += f.Bytes
		}
	}
	s.counts.readBefore.Store(s.counts.read())
	s.counts.cycleBytes.Store(total)
	c.began = s.o.Clock.Mono()
	c.rate = max(1, float64(total)/(scrubShare*s.o.Period.Seconds()))
	c.chunks, c.store, c.listed = false, 0, false
	if late := c.rate > bytesMax; late != c.late {
		c.late = late
		if late {
			s.o.Logger.Warn("too much data to scrub within the period: cycles take longer", "bytes", total,
				"period", s.o.Period, "bytes_per_second_max", bytesMax)
		}
	}
}

func (s *Scrubber) endCycle() time.Duration {
	s.cycle.rate = 0
	s.counts.scrubRounds.Add(1)
	s.counts.cycleEnded.Store(s.o.Clock.Now().UnixMilli())
	return max(0, s.cycle.began+s.o.Period-s.o.Clock.Mono())
}

// scrubChunk reads the next chunk. The chunk store records damage, for the repair.
func (s *Scrubber) scrubChunk(ctx context.Context) time.Duration {
	ref, err := s.o.Chunks.Scrub(ctx)
	switch {
	case errors.Is(err, io.EOF):
		s.cycle.chunks = true
		return 0
	case errors.Is(err, extent.ErrCorrupt):
		s.o.Logger.Error("scrub found a damaged chunk; it is copied from a peer", "chunk", ref.ID, "bytes", ref.Length, "error", err)
	case err != nil:
		return time.Minute // The store is closed or the node ends.
	}
	s.counts.scrubbedChunks.Add(1)
	s.counts.scrubbedExtents.Add(uint64(ref.Length))
	return s.scrubRest(uint64(ref.Length))
}

func (s *Scrubber) scrubFile(store Store, f state.File) {
	switch err := store.Files.Verify(f); {
	case errors.Is(err, state.ErrDamaged), errors.Is(err, state.ErrLogCorrupt):
		s.o.Node.Quarantine(store.Name, err)
	case err != nil:
		s.o.Logger.Warn("cannot scrub a file", "file", f.Path, "error", err)
	}
	s.scrubbed(store.Name).Add(f.Bytes)
}

// scrubRest returns how long to rest after reading so many bytes more.
func (s *Scrubber) scrubRest(bytes uint64) time.Duration {
	applied := s.o.Node.Applied()
	rate := s.cycle.rate
	if applied == s.cycle.applied {
		rate = max(rate, idleBytes)
	}
	s.cycle.applied = applied
	s.cycle.owed += time.Duration(float64(bytes) / min(rate, bytesMax) * float64(time.Second))
	if s.cycle.owed < restLeast {
		return 0
	}
	rest := s.cycle.owed
	s.cycle.owed = 0
	return rest
}

// scrubbed counts the bytes of a store that were checked.
func (s *Scrubber) scrubbed(store string) *atomic.Uint64 {
	if store == "log" {
		return &s.counts.scrubbedLog
	}
	return &s.counts.scrubbedState
}
