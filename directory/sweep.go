package directory

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// A sweep frees the space of deleted tables and containers, at the primary of their account and at its
// secondary alike: a Sweeper walks over the generations that have rows in a range and wipes those that the
// catalog of its location has deleted or replaced. A wiped generation has no rows, so that nothing has to
// remember which ones were swept; rows that come late are found by a later round.
//
// Why no row of a living generation is wiped:
//
//   - A generation that the catalog has deleted or replaced never returns, within an epoch of the account.
//     The catalog is asked for what it has acknowledged, not for what a replica has applied.
//   - In a new epoch a copy may begin again and hold the generation. Its gate is set in the group that wipes the
//     catalog's rows too (wipeCopy). So a sweep names the epoch of the gate as it was before the catalog was asked, and
//     does nothing under another one.
//   - At the primary the range takes no change of the generation any more: it was closed before its deletion was
//     answered (R8), or the sweep closes it in the group that wipes it, as where the front end died before.
//     At the secondary the records that are still to come move the cursor only (R14).
//
// The row of a closed generation stays: a late command must still be answered as gone (R8).

// Bounds of a step. A wipe makes reads slower until it is flushed, so that there are few at a time.
const (
	sweepLooks = 256
	// sweepRest is the pause between two steps of a round, and sweepEvery between two rounds.
	sweepRest  = 200 * time.Millisecond
	sweepEvery = 10 * time.Second
	// sweepSkips is how many rounds a range is left out while the catalog stays as it was in a round that found nothing.
	// Then rows that came late are looked for.
	sweepSkips = 360
	// sweepWait bounds how long a step waits for the catalog.
	sweepWait = 2 * time.Second
)

// SweeperOptions configures a Sweeper.
type SweeperOptions struct {
	Stamp ranges.Reader
	// Leader returns a range at its leader, nil while no node of this process leads it.
	Leader func(geo.RangeID) *ranges.Range
	// Catalog is the range of the catalog, Ranges are those that are swept.
	Catalog geo.RangeID
	Ranges  []geo.RangeID
	// Every is the pause between two rounds. Zero means 10 s.
	Every  time.Duration
	Logger *slog.Logger
}

// Sweeper sweeps the ranges that this process leads. Step is called by one goroutine.
type Sweeper struct {
	o     SweeperOptions
	walks []sweepWalk
	// at is the walk under way, len(walks) between two rounds.
	at int
	// pending are the commands without an answer.
	pending atomic.Int64
	swept   atomic.Uint64
}

// sweepWalk is how far the sweep of a range is.
type sweepWalk struct {
	id geo.RangeID
	// next is where the round goes on, nil before it has begun.
	next []byte
	// version is that of the catalog when the round began. clean is the one in which a whole round found nothing to
	// wipe, zero for none, and skipped how many rounds were left out since.
	version, clean uint64
	skipped        int
	found          bool
}

// NewSweeper returns a sweeper.
func NewSweeper(o SweeperOptions) *Sweeper {
	if o.Every == 0 {
		o.Every = sweepEvery
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Sweeper{o: o}
	for _, id := range o.Ranges {
		s.walks = append(s.walks, sweepWalk{id: id})
	}
	return s
}

// Swept counts the wipes that were committed.
func (s *Sweeper) Swept() uint64 { return s.swept.Load() }

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) {
	for rest := s.o.Every; clock.Wait(ctx, rest) == nil; {
		step, end := context.WithTimeout(ctx, sweepWait)
		rest = s.Step(step)
		end()
	}
}

// Step looks at some generations and wipes those of them that are over. It returns after how long it wants to be
// called again. It does not wait for commits.
func (s *Sweeper) Step(ctx context.Context) (rest time.Duration) {
	if s.pending.Load() > 0 {
		return sweepRest
	}
	if s.at == len(s.walks) {
		s.at = 0
	}
	w := &s.walks[s.at]
	more, err := s.look(ctx, w)
	if err != nil && ctx.Err() == nil && !errors.Is(err, kv.ErrBusy) && !errors.Is(err, ranges.ErrNotLeader) {
		s.o.Logger.Warn("cannot look for rows of deleted tables and containers; tried again", "range", w.id, "error", err)
	}
	if more && err == nil {
		return sweepRest
	}
	*w = sweepWalk{id: w.id, clean: w.clean, skipped: w.skipped}
	if s.at++; s.at == len(s.walks) {
		return s.o.Every
	}
	return sweepRest
}

// look goes on with the round of a range. more is false at its end.
func (s *Sweeper) look(ctx context.Context, w *sweepWalk) (more bool, err error) {
	r := s.o.Leader(w.id)
	if r == nil {
		w.clean = 0
		return false, nil
	}
	if w.next == nil {
		if skip, err := s.begin(ctx, w); skip || err != nil {
			return false, err
		}
	}
	seen, err := generations(r.State().Snapshot(), &w.next, w.id)
	if err != nil {
		return false, err
	}
	more = len(seen) == sweepLooks
	over, err := s.over(ctx, seen, r.Machine.Gate)
	if err != nil {
		w.clean = 0
		return false, err
	}
	if len(over) > record.WipesMax {
		w.next, over, more = record.ContainerPrefix(over[record.WipesMax].p), over[:record.WipesMax], true
	}
	w.found = w.found || len(over) > 0
	s.submit(r, over)
	if !more && !w.found {
		w.clean, w.skipped = w.version, 0
	}
	return more, nil
}

// begin begins a round, or reports that it is left out.
func (s *Sweeper) begin(ctx context.Context, w *sweepWalk) (skip bool, err error) {
	err = s.o.Stamp.Read(ctx, s.o.Catalog, func(state ranges.State) error {
		w.version = uint64(state.Version())
		return nil
	})
	if err != nil {
		return false, err
	}
	if w.clean == 0 || w.clean != w.version || w.skipped == sweepSkips {
		w.clean = 0
		held, _ := ranges.Span(w.id)
		w.next = []byte(held.Start)
		return false, nil
	}
	w.skipped++
	return true, nil
}

// generations returns the next generations that have rows in a range, and moves next behind them.
func generations(snap kv.Snapshot, next *[]byte, id geo.RangeID) (out []keys.Partition, err error) {
	defer func() { err = errors.Join(err, snap.Close()) }()
	held, _ := ranges.Span(id)
	it, err := snap.Scan(*next, []byte(held.End))
	if err != nil {
		return nil, err
	}
	for ok := it.Next(); ok && len(out) < sweepLooks; ok = it.SeekGE(*next) {
		p, _, err := keys.ParsePartition(it.Key())
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		p.Object = ""
		out = append(out, p)
		*next = keys.PrefixEnd(record.ContainerPrefix(p))
	}
	return out, it.Close()
}

// over returns sweeps of those generations that the catalog has deleted or replaced, of accounts whose gate is
// open.
func (s *Sweeper) over(ctx context.Context, seen []keys.Partition, gate func(geo.Account) change.Gate) (over []*sweep, err error) {
	var asked []*sweep
	for _, p := range seen {
		if g := gate(p.Account); g.Open {
			asked = append(asked, &sweep{p: p, epoch: g.Epoch}) // Before the catalog is asked.
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	err = s.o.Stamp.Read(ctx, s.o.Catalog, func(state ranges.State) error {
		over = nil
		for _, c := range asked {
			found, err := catalog.Lookup(state, c.p.Service, c.p.Account, c.p.Container)
			if err != nil {
				return err
			}
			if found != nil && found.Over(c.p.Generation) {
				over = append(over, c)
			}
		}
		return nil
	})
	return over, err
}

func (s *Sweeper) submit(r *ranges.Range, over []*sweep) {
	for _, c := range over {
		s.pending.Add(1)
		r.Submit(c, func(err error) {
			if err == nil && c.wiped { // Where it failed a later round finds it again.
				s.swept.Add(1)
				s.o.Logger.Info("the rows of a deleted table or container are deleted", "service", c.p.Service.String(),
					"account", string(c.p.Account), "container", c.p.Container, "epoch", uint64(c.p.Generation.Epoch), "created", c.p.Generation.Created.String())
			}
			s.pending.Add(-1)
		})
	}
}

// sweep commits that the rows of a generation that is over are deleted.
type sweep struct {
	// p is the generation: all of its partitions.
	p keys.Partition
	// epoch is that of the account's gate before the catalog was asked.
	epoch geo.Epoch
	wiped bool
}

// Evaluate implements ranges.Command.
func (c *sweep) Evaluate(tx *ranges.Tx) error {
	c.wiped = false
	gate := tx.Gate(c.p.Account)
	if !gate.Open || gate.Epoch != c.epoch {
		return nil
	}
	if gate.Role == change.RolePrimary {
		key := keys.ClosedGeneration(tx.Range(), c.p.Service, c.p.Account, c.p.Container, c.p.Generation)
		closed, err := tx.GenerationClosed(key)
		if err != nil {
			return err
		}
		if !closed {
			tx.CloseGeneration(key)
		}
	}
	prefix := record.ContainerPrefix(c.p)
	if err := tx.Wipe(state.Span{Lower: prefix, Upper: keys.PrefixEnd(prefix)}); err != nil {
		return err
	}
	c.wiped = true
	return nil
}

// Reclaims implements ranges.Reclaimer.
func (c *sweep) Reclaims() {}
