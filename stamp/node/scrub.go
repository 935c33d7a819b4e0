package node

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"antipode/stamp/extent"
	"antipode/stamp/state"
)

// A scrub round reads, in this order: every chunk, every table of the state store, every
// segment of the log. It takes about scrubShare of ScrubPeriod, the rest is for nodes
// that were down. While clients write it goes only as fast as that asks for; on a node at
// rest it goes at scrubIdleBytes at least, so that a small store is soon done. It never
// goes beyond scrubBytesMax: a store that is larger than that allows takes longer than
// the period, and the node says so.
//
// A round begins anew with the process.
const (
	scrubShare     = 0.8
	scrubIdleBytes = 4 << 20  // per second
	scrubBytesMax  = 64 << 20 // per second
	// scrubRestLeast: shorter rests are taken together, as no timer is much finer.
	scrubRestLeast = 10 * time.Millisecond
)

// scrubRound is how far a round has come.
type scrubRound struct {
	began time.Duration
	// rate is what the round asks for, in bytes per second; zero before it began.
	rate float64
	// owed is the rest that is due and was not taken yet.
	owed time.Duration
	// chunks are done; then the stores, one after the other.
	chunks bool
	stores []scrubStore
	store  int
	files  []state.File
	listed bool
	// applied is the sum of the applied indexes at the last step.
	applied uint64
	late    bool
}

// scrubStore is a store of files, in the folder dir of the node.
type scrubStore struct {
	dir   string
	files state.Verifier
	bytes *atomic.Uint64
}

func (u *upkeep) scrubStep(ctx context.Context) time.Duration {
	round := &u.scrub
	if round.rate == 0 {
		u.beginScrub()
	}
	if !round.chunks {
		return u.scrubChunk(ctx)
	}
	for round.store < len(round.stores) {
		s := round.stores[round.store]
		if !round.listed {
			var err error
			if round.files, err = s.files.Files(); err != nil {
				u.n.o.Logger.Warn("cannot list the files of a store to scrub them; tried again", "store", s.dir, "error", err)
				return time.Minute
			}
			round.listed = true
		}
		if len(round.files) > 0 {
			f := round.files[0]
			round.files = round.files[1:]
			u.scrubFile(s, f)
			return u.scrubRest(f.Bytes)
		}
		round.store++
		round.listed = false
	}
	return u.endScrub()
}

func (u *upkeep) beginScrub() {
	round := &u.scrub
	total := uint64(u.n.extents.Stats().FileBytes)
	for _, s := range round.stores {
		files, err := s.files.Files()
		if err != nil {
			continue // The step that reads them says so.
		}
		for _, f := range files {
			total += f.Bytes
		}
	}
	round.began = u.n.o.Clock.Mono()
	round.rate = max(1, float64(total)/(scrubShare*u.n.o.ScrubPeriod.Seconds()))
	round.chunks, round.store, round.listed = false, 0, false
	if late := round.rate > scrubBytesMax; late != round.late {
		round.late = late
		if late {
			u.n.o.Logger.Warn("too much data to scrub within the period: rounds take longer", "bytes", total,
				"period", u.n.o.ScrubPeriod, "bytes_per_second_max", scrubBytesMax)
		}
	}
}

func (u *upkeep) endScrub() time.Duration {
	u.scrub.rate = 0
	u.counts.scrubRounds.Add(1)
	return max(0, u.scrub.began+u.n.o.ScrubPeriod-u.n.o.Clock.Mono())
}

// scrubChunk reads the next chunk. Damage is noted by the extents, for the repair.
func (u *upkeep) scrubChunk(ctx context.Context) time.Duration {
	ref, err := u.n.extents.Scrub(ctx)
	switch {
	case errors.Is(err, io.EOF):
		u.scrub.chunks = true
		return 0
	case errors.Is(err, extent.ErrCorrupt):
		u.n.o.Logger.Error("scrub found a damaged chunk; it is copied from a peer", "chunk", ref.ID, "bytes", ref.Length, "error", err)
	case err != nil:
		return time.Minute // The store is closed or the node ends.
	}
	u.counts.scrubbedChunks.Add(1)
	u.counts.scrubbedExtents.Add(uint64(ref.Length))
	return u.scrubRest(uint64(ref.Length))
}

func (u *upkeep) scrubFile(s scrubStore, f state.File) {
	switch err := s.files.Verify(f); {
	case errors.Is(err, state.ErrDamaged), errors.Is(err, state.ErrLogCorrupt):
		u.n.condemn(s.dir, err)
	case err != nil:
		u.n.o.Logger.Warn("cannot scrub a file", "file", f.Path, "error", err)
	}
	s.bytes.Add(f.Bytes)
}

// scrubRest is how long to rest after so many bytes more.
func (u *upkeep) scrubRest(bytes uint64) time.Duration {
	var applied uint64
	for _, r := range u.n.ranges {
		applied += r.Machine.AppliedState().Index
	}
	rate := u.scrub.rate
	if applied == u.scrub.applied {
		rate = max(rate, scrubIdleBytes)
	}
	u.scrub.applied = applied
	u.scrub.owed += time.Duration(float64(bytes) / min(rate, scrubBytesMax) * float64(time.Second))
	if u.scrub.owed < scrubRestLeast {
		return 0
	}
	rest := u.scrub.owed
	u.scrub.owed = 0
	return rest
}
