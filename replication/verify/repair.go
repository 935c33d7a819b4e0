package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"antipode/internal/clock"
)

// Bounds of a repair.
const (
	// RepairRowsMax is how many rows Repairing.Rows is asked for at once.
	RepairRowsMax = 512
	// repairListMax is how many differences are repaired between two comparisons.
	repairListMax = 10_000
	// repairedMax is about how many rows one repair changes. The next one goes on.
	repairedMax = 100_000
	// repairTries is how often a row is repaired that differs again.
	repairTries = 3
	// repairBytesPerSecond is the rate of a repair where none is asked for.
	repairBytesPerSecond = 8 << 20
	// repairRowBytes is what a row costs besides its bytes: its record at the primary, and on its way.
	repairRowBytes = 512
	// askTries is how often rows are asked for while that fails, as without a leader, and askPause the
	// pause before the second time. It doubles up to askPauseMax.
	askTries    = 8
	askPause    = 200 * time.Millisecond
	askPauseMax = 3 * time.Second
	// payloadTries is how often a row is asked for whose payload the leader of the primary lacks, and
	// payloadPause the pause between: the scrub copies the payload from another replica.
	payloadTries = 10
	payloadPause = time.Second
)

// Fate is what became of a row that differs.
type Fate string

// The fates of a row.
const (
	// FateSet: the secondary gets the primary's row again, with its payload.
	FateSet Fate = "set"
	// FateDeleted: the primary does not have the row; it is deleted.
	FateDeleted Fate = "deleted"
	// FateGone: its container was deleted meanwhile. It is not compared any more.
	FateGone Fate = "container deleted"
	// FateNot: it is not repaired.
	FateNot Fate = "not repaired"
	// FateLater: it was too much at once. It is asked for again.
	FateLater Fate = "later"
	// FateWaits: a payload chunk is not at the leader of the primary. It is asked for again for a while.
	FateWaits Fate = "waits"
)

// Repaired is what became of one row.
type Repaired struct {
	Fate
	// Reason belongs to FateNot.
	Reason string
}

// Repairing is a comparison after which the rows that differ are repaired at the secondary.
type Repairing struct {
	// Comparison is repeated after each repair. Zero DifferencesMax means 10,000.
	Comparison
	// Rows repairs rows, RepairRowsMax at most, in the order of keys. It returns the fate of each, and how
	// many bytes are sent for them. After an error some may have been repaired; it is called again. It
	// calls read with what it reads of the payload that is sent; read waits, to keep the rate.
	Rows func(ctx context.Context, keys [][]byte, read func(context.Context, int) error) ([]Repaired, uint64, error)
	// RepairBytesPerSecond bounds what is sent. Zero means 8 MiB/s.
	RepairBytesPerSecond uint64
	// Clock keeps that rate. Nil means the machine's.
	Clock clock.Clock
	// Compared is called after each comparison, Repaired after each call of Rows.
	Compared func(Result)
	Repaired func(Repairs)
}

// Repairs is what a repair has done.
type Repairs struct {
	// Set, Deleted, Gone and Not count rows by their fates. A row that was repaired again counts once.
	Set, Deleted, Gone, Not uint64
	// Bytes were sent again, payload included.
	Bytes uint64
	// More is set if the repair has ended before all differences were repaired: another one goes on.
	More bool
	// Rows has each row that was found to differ, by key. It must not be read before the repair has ended.
	Rows map[string]Repaired
}

// repairing is a repair under way.
type repairing struct {
	o     Repairing
	out   Repairs
	tries map[string]int
}

// Repair compares, has the rows that differ repaired, and compares again, until nothing differs or
// nothing more can be repaired. The primary is right: each row is set to what it is there, or deleted
// there. Writes go on: a repair is an ordinary change of the row's partition. An interrupted repair
// is continued by another, since that compares first. It returns an error only if ctx ended.
func Repair(ctx context.Context, o Repairing) (Repairs, error) {
	if o.Wait == nil {
		o.Wait = clock.Wait
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.DifferencesMax == 0 {
		o.DifferencesMax = repairListMax
	}
	if o.RepairBytesPerSecond == 0 {
		o.RepairBytesPerSecond = repairBytesPerSecond
	}
	r := &repairing{o: o, out: Repairs{Rows: map[string]Repaired{}}, tries: map[string]int{}}
	for {
		found, err := Run(ctx, o.Comparison)
		o.Compared(found)
		if err != nil || found.Total == 0 {
			return r.out, err
		}
		if r.out.More = len(r.tries) >= repairedMax; r.out.More {
			return r.out, nil
		}
		repaired, err := r.repair(ctx, found.Differences)
		if err != nil || !repaired {
			return r.out, err
		}
	}
}

// repair has rows repaired, and reports whether another comparison may find less.
func (r *repairing) repair(ctx context.Context, differences []Difference) (repaired bool, err error) {
	unique := map[string]bool{}
	for _, d := range differences {
		if r.tries[string(d.Key)] < repairTries {
			unique[string(d.Key)] = true
		} else if r.out.Rows[string(d.Key)].Fate != FateNot {
			r.set(d.Key, Repaired{FateNot, fmt.Sprintf("it differs again after it was repaired %d times", repairTries)})
		}
	}
	rows := make([][]byte, 0, len(unique))
	for _, key := range slices.Sorted(maps.Keys(unique)) {
		rows = append(rows, []byte(key))
	}
	pace := &pace{clock: r.o.Clock, wait: r.o.Wait, rate: r.o.RepairBytesPerSecond, began: r.o.Clock.Mono()}
	for try := 1; len(rows) > 0; try++ {
		waiting, some, err := r.send(ctx, rows, pace)
		repaired = repaired || some
		if err != nil || len(waiting) == 0 {
			return repaired, err
		}
		if try == payloadTries {
			for _, key := range waiting {
				r.set(key, Repaired{FateNot, "its payload is not at the node that leads the range at the primary"})
			}
			break
		}
		if err := r.o.Wait(ctx, payloadPause); err != nil {
			return repaired, err
		}
		rows = waiting
	}
	return repaired, nil
}

// send has rows repaired at the rate of the repair. It returns those that wait for payload, and whether
// any does not differ any more.
func (r *repairing) send(ctx context.Context, rows [][]byte, pace *pace) (waiting [][]byte, repaired bool, err error) {
	for len(rows) > 0 {
		batch := rows[:min(len(rows), RepairRowsMax)]
		counted := uint64(0)
		fates, bytes, err := r.ask(ctx, batch, func(ctx context.Context, n int) error {
			counted += uint64(n)
			pace.spend(n)
			return pace.hold(ctx)
		})
		if ctx.Err() != nil {
			return nil, repaired, ctx.Err()
		}
		if err == nil && (len(fates) != len(batch) || fates[0].Fate == FateLater) {
			err = fmt.Errorf("%w: %d fates of %d rows", errMalformed, len(fates), len(batch))
		}
		if err != nil {
			for _, key := range rows {
				r.set(key, Repaired{FateNot, err.Error()})
			}
			return waiting, repaired, nil
		}
		var later [][]byte
		for i, f := range fates {
			switch f.Fate {
			case FateLater:
				later = append(later, batch[i])
			case FateWaits:
				waiting = append(waiting, batch[i])
			default:
				repaired = repaired || f.Fate != FateNot
				r.tries[string(batch[i])]++
				r.set(batch[i], f)
			}
		}
		rows = append(later, rows[len(batch):]...)
		r.out.Bytes += bytes
		r.o.Repaired(r.out)
		pace.spend(int(bytes-min(bytes, counted)) + repairRowBytes*len(batch))
		if err := pace.hold(ctx); err != nil {
			return nil, repaired, err
		}
	}
	return waiting, repaired, nil
}

// ask asks for rows, again where that fails.
func (r *repairing) ask(
	ctx context.Context, rows [][]byte, read func(context.Context, int) error,
) (fates []Repaired, bytes uint64, err error) {
	pause := askPause
	for try := 1; ; try++ {
		fates, bytes, err = r.o.Rows(ctx, rows, read)
		if err == nil || try == askTries {
			return fates, bytes, err
		}
		if err := r.o.Wait(ctx, pause); err != nil {
			return nil, 0, err
		}
		pause = min(2*pause, askPauseMax)
	}
}

// set records the fate of a row.
func (r *repairing) set(key []byte, f Repaired) {
	if before, known := r.out.Rows[string(key)]; known {
		*r.out.of(before.Fate)--
	}
	*r.out.of(f.Fate)++
	r.out.Rows[string(key)] = f
}

// of returns the counter of a fate.
func (o *Repairs) of(f Fate) *uint64 {
	switch f {
	case FateSet:
		return &o.Set
	case FateDeleted:
		return &o.Deleted
	case FateGone:
		return &o.Gone
	default:
		return &o.Not
	}
}
