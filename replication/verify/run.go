package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
)

// Bounds of a comparison.
const (
	// roundsMax is how many pairs of snapshots the rows are compared in.
	roundsMax = 8
	// failedMax is how many rounds may fail.
	failedMax = 3
	// triesMax is how many pairs of snapshots are opened for one round. The one in which most lanes stand
	// at the same record is used.
	triesMax = 8
	// tryPause is the pause after the first of them, and grows with each.
	tryPause = 50 * time.Millisecond
	// differencesMax is how many differences are listed where nothing else is asked for.
	differencesMax = 1000
)

// Comparison is one range of an account that is compared.
type Comparison struct {
	Account geo.Account
	Epoch   geo.Epoch
	Range   geo.RangeID
	// Lanes are those that are compared. Nil means all.
	Lanes []geo.Lane
	// Near is the primary, Far the secondary.
	Near, Far Peer
	// Prefixes returns the prefixes of the keys that are compared, in order: those of the containers
	// that live now at the primary. The secondary skips changes of a container that its catalog has
	// deleted. Prefixes is called after both snapshots were taken: what the secondary had deleted in its
	// snapshot is not among them, since the primary deleted it before.
	Prefixes func(ctx context.Context) ([][]byte, error)
	// Payload is how the payload at the secondary is examined.
	Payload Payload
	// BytesPerSecond bounds what each location reads. Zero means 64 MiB/s.
	BytesPerSecond uint64
	// DifferencesMax bounds the list of differences. Zero means 1,000.
	DifferencesMax int
	// Progress is called now and then. Nil: nobody asks.
	Progress func(Progress)
	// Wait waits for a time, or until ctx ends. Nil means clock.Wait.
	Wait func(ctx context.Context, d time.Duration) error
}

// Progress is how far a comparison is.
type Progress struct {
	// Round counts from 1.
	Round int
	// Compared is how many lanes were compared, Left how many were not.
	Compared, Left int
	// Bytes that were read at the primary in all rounds.
	Bytes uint64
}

// Kind is how a row differs.
type Kind string

// The differences.
const (
	// Missing: the primary has the row, the secondary does not.
	Missing Kind = "missing"
	// Extra: the secondary has the row, the primary does not.
	Extra Kind = "extra"
	// Different: both have it, with different values.
	Different Kind = "different"
	// PayloadMissing: a payload chunk that the row names is not at the secondary.
	PayloadMissing Kind = "payload missing"
	// PayloadCorrupt: a payload chunk at the secondary, or the row that names it, cannot be read.
	PayloadCorrupt Kind = "payload corrupt"
)

// Difference is a row in which the two copies differ.
type Difference struct {
	Kind Kind
	Key  []byte
	// Chunk and Reason belong to payload.
	Chunk, Reason string
}

// Uncompared is a lane that was not compared.
type Uncompared struct {
	Lane   geo.Lane
	Reason string
}

// Result is what was found in a range.
type Result struct {
	// Compared is the number of lanes that were compared.
	Compared   int
	Uncompared []Uncompared
	// Differences are the first ones found, in the order of keys. Total counts all; AtLeast is set if
	// there may be more, since not all parts that differ were followed.
	Differences []Difference
	Total       uint64
	AtLeast     bool
	// Rows and Bytes are those of the lanes that were compared, as the primary has them.
	Rows, Bytes uint64
	// Chunks is how many references to payload chunks were examined at the secondary, and ChunkBytes
	// how many bytes of chunks were read.
	Chunks, ChunkBytes uint64
}

// run is a comparison under way.
type run struct {
	o       Comparison
	out     Result
	pending []geo.Lane
	// why is the reason for which a pending lane was not compared last time.
	why [geo.LaneCount]string
	// round counts from 1; before is what was read at the primary in earlier scans, at in this one.
	round      int
	before, at uint64
}

// Run compares a range. It returns an error only if ctx ended; whatever else prevents a comparison is
// the reason of lanes that were not compared.
func Run(ctx context.Context, o Comparison) (Result, error) {
	if o.Wait == nil {
		o.Wait = clock.Wait
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.DifferencesMax == 0 {
		o.DifferencesMax = differencesMax
	}
	r := &run{o: o, pending: slices.Clone(o.Lanes)}
	for l := geo.Lane(0); o.Lanes == nil && l < geo.LaneCount; l++ {
		r.pending = append(r.pending, l)
	}
	failed := 0
	for r.round = 1; r.round <= roundsMax && failed < failedMax && len(r.pending) > 0; r.round++ {
		r.report()
		if err := r.once(ctx); err != nil {
			if ctx.Err() != nil {
				return r.out, ctx.Err()
			}
			failed++
			for _, l := range r.pending {
				r.why[l] = err.Error()
			}
		}
		if len(r.pending) > 0 {
			if err := o.Wait(ctx, tryPause*time.Duration(r.round)); err != nil {
				return r.out, err
			}
		}
	}
	for _, l := range r.pending {
		r.out.Uncompared = append(r.out.Uncompared, Uncompared{l, r.why[l]})
	}
	slices.SortFunc(r.out.Uncompared, func(a, b Uncompared) int { return int(a.Lane) - int(b.Lane) })
	slices.SortFunc(r.out.Differences, func(a, b Difference) int { return slices.Compare(a.Key, b.Key) })
	if n := len(r.out.Differences); n > o.DifferencesMax {
		r.out.Differences = r.out.Differences[:o.DifferencesMax]
	}
	return r.out, nil
}

// read takes how far the present scan is at the primary.
func (r *run) read(p progress) {
	r.at = p.bytes + p.chunkBytes
	r.report()
}

func (r *run) report() {
	r.o.Progress(Progress{Round: r.round, Compared: r.out.Compared, Left: len(r.pending), Bytes: r.before + r.at})
}

// once compares the lanes that stand at the same record in one pair of snapshots.
func (r *run) once(ctx context.Context) error {
	p, lanes, err := r.choose(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	if len(lanes) == 0 {
		return nil
	}
	prefixes, err := r.o.Prefixes(ctx)
	if err != nil {
		return fmt.Errorf("read the containers: %w", err)
	}
	if err := p.each(ctx, func(ctx context.Context, e *end) error { return e.name(ctx, prefixes) }); err != nil {
		return err
	}
	found, err := r.compare(ctx, p, lanes)
	if err != nil {
		return err
	}
	r.take(found, lanes)
	return nil
}

// choose opens pairs of snapshots until all pending lanes stand at the same record in one, and returns
// that one, or the best, with the lanes that do. It gives up lanes that are stopped.
func (r *run) choose(ctx context.Context) (best *pair, lanes []geo.Lane, err error) {
	for try := 1; try <= triesMax; try++ {
		p, err := r.openPair(ctx)
		if err != nil {
			if best != nil {
				return best, lanes, nil
			}
			return nil, nil, err
		}
		if try == 1 {
			r.giveUp(p)
		}
		var now []geo.Lane
		for _, l := range r.pending {
			s, why := p.state(l)
			if r.why[l] = why; s == ready {
				now = append(now, l)
			}
		}
		switch {
		case best == nil:
			best, lanes = p, now
		case len(now) > len(lanes):
			best.close()
			best, lanes = p, now
		default:
			p.close()
		}
		if len(lanes) == len(r.pending) {
			break
		}
		if err := r.o.Wait(ctx, tryPause*time.Duration(try)); err != nil {
			best.close()
			return nil, nil, err
		}
	}
	return best, lanes, nil
}

// giveUp takes lanes that are stopped off those that are pending.
func (r *run) giveUp(p *pair) {
	r.pending = slices.DeleteFunc(r.pending, func(l geo.Lane) bool {
		s, why := p.state(l)
		if s == stopped {
			r.out.Uncompared = append(r.out.Uncompared, Uncompared{l, why})
		}
		return s == stopped
	})
}

// take adds what one pair of snapshots showed of some lanes.
func (r *run) take(found Result, lanes []geo.Lane) {
	r.pending = slices.DeleteFunc(r.pending, func(l geo.Lane) bool { return slices.Contains(lanes, l) })
	r.out.Compared += len(lanes)
	r.out.Differences = append(r.out.Differences, found.Differences...)
	r.out.Total += found.Total
	r.out.AtLeast = r.out.AtLeast || found.AtLeast
	r.out.Rows += found.Rows
	r.out.Bytes += found.Bytes
	r.out.Chunks += found.Chunks
	r.out.ChunkBytes += found.ChunkBytes
	r.before, r.at = r.before+r.at, 0
}
