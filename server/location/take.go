package location

import (
	"context"
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/primary"
	"antipode/replication/verify"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
)

// settlingRows settles the rows that differ in the lanes of a settlement, each lane for the side that is kept.
type settlingRows struct {
	l     *Location
	stamp *stamp.Stamp
	of    settlement
	stops map[geo.Lane]change.Stop
	c     verify.Comparison
}

// settledUnit is a unit of rows that differ.
type settledUnit struct {
	key  []byte
	lane geo.Lane
	// rows are the indexes of the rows.
	rows []int
	fate verify.Repaired
}

// settle is verify.Repairing.Rows: a unit of a lane whose settlement keeps the secondary's side becomes what it is
// there. Every other row is repaired: at the secondary it becomes what it is here. So does one that is the same
// in both and lacks payload at the secondary, and one that a client has written since the settlement began.
func (s *settlingRows) settle(ctx context.Context, rows [][]byte, read func(context.Context, int) error) ([]verify.Repaired, uint64, error) {
	out := make([]verify.Repaired, len(rows))
	var repair []int
	taken, bytes := map[geo.Lane][]*settledUnit{}, uint64(0)
	var last *settledUnit
	for i, key := range rows {
		u, err := s.unitOf(key)
		switch {
		case err != nil || s.stops[u.lane].Reason != change.StopTaking:
			repair = append(repair, i)
		case last != nil && slices.Equal(last.key, u.key):
			last.rows = append(last.rows, i)
		default:
			last = u
			last.rows = []int{i}
			taken[u.lane] = append(taken[u.lane], last)
		}
	}
	for lane, units := range taken {
		n, err := s.take(ctx, lane, units, read)
		if bytes += n; err != nil {
			return nil, bytes, err
		}
		for _, u := range units {
			for _, i := range u.rows {
				if out[i] = u.fate; u.fate.Fate == fateRepair {
					repair = append(repair, i)
				}
			}
		}
	}
	if len(repair) == 0 {
		return out, bytes, nil
	}
	slices.Sort(repair)
	again := make([][]byte, 0, len(repair))
	for _, i := range repair {
		again = append(again, rows[i])
	}
	fates, n, err := s.l.verifying.repairRows(ctx, s.c, again, read)
	for n, i := range repair[:len(fates)] {
		out[i] = fates[n]
	}
	return out, bytes + n, err
}

func (s *settlingRows) unitOf(key []byte) (*settledUnit, error) {
	p, row, err := keys.ParsePartition(key)
	if err != nil {
		return &settledUnit{}, err
	}
	return &settledUnit{key: p.Unit(row), lane: p.Lane()}, nil
}

// fateRepair is the fate of units that are left to a repair.
const fateRepair verify.Fate = "repair"

// take makes units of a lane what they are at the secondary, and sets their fates.
func (s *settlingRows) take(ctx context.Context, lane geo.Lane, units []*settledUnit, read func(context.Context, int) error) (bytes uint64, err error) {
	stop := s.stops[lane]
	st := geo.Stream{Account: s.of.account, Epoch: s.of.epoch, Range: s.of.rng, Lane: lane}
	for len(units) > 0 {
		asked := make([][]byte, 0, len(units))
		for _, u := range units {
			asked = append(asked, u.key)
		}
		found, heads, err := verify.Units(ctx, s.c.Far, s.of.rng, s.of.account, s.of.epoch, asked)
		if err != nil {
			return bytes, fmt.Errorf("read rows at the secondary: %w", err)
		}
		if err := settlesFrom(heads[lane], stop.Here); err != nil {
			return bytes, err
		}
		n, err := s.commit(ctx, &primary.Take{Stream: st, Base: stop.Here, At: heads[lane].Head}, units[:len(found)], found, read)
		if bytes += n; err != nil {
			return bytes, err
		}
		units = units[len(found):]
	}
	return bytes, nil
}

// settlesFrom returns an error if the secondary does not settle a lane from a base. It may settle it from an earlier one
// again, to which a recovery with loss has brought it back: then it has not what it had when it was stopped for this one.
func settlesFrom(at verify.LaneHead, base geo.Head) error {
	switch {
	case at.Stopped != change.StopSettling.String() || at.Head.Seq < base.Seq && at.Base == base:
		return fmt.Errorf("the secondary is not at the base #%d of the settlement, but at #%d", base.Seq, at.Head.Seq)
	case at.Base != base:
		return fmt.Errorf("the secondary settles it from #%d, not from #%d: if that lasts, it was recovered with loss since the command,"+
			" and only the side of the primary can be kept", at.Base.Seq, base.Seq)
	}
	return nil
}

// commit fetches the payload of units, and has them taken.
func (s *settlingRows) commit(
	ctx context.Context, cmd *primary.Take, units []*settledUnit, found []verify.Unit, read func(context.Context, int) error,
) (bytes uint64, err error) {
	var asked []*settledUnit
	for i, u := range units {
		unit, size := unitToTake(u.key, &found[i])
		bytes += size
		n, err := s.fetch(ctx, unit.TakeChunks(), read)
		bytes += n
		switch {
		case ctx.Err() != nil:
			return bytes, ctx.Err()
		case err != nil:
			u.fate = verify.Repaired{Fate: verify.FateNot, Reason: "its payload cannot be fetched from the secondary: " + err.Error()}
			continue
		}
		asked, cmd.Units = append(asked, u), append(cmd.Units, unit)
	}
	for len(asked) > 0 {
		outcomes, err := s.l.Primary.Take(ctx, cmd)
		if err != nil {
			return bytes, err
		}
		n := 0
		for n < len(outcomes) && outcomes[n] != primary.TakeLater {
			if asked[n].fate = fateTaken(outcomes[n], &cmd.Units[n]); outcomes[n] == primary.TakeLarge {
				s.tooLarge(asked[n])
			}
			n++
		}
		if n == 0 {
			return bytes, fmt.Errorf("stream %s: no row of %d was taken", cmd.Stream, len(asked))
		}
		asked, cmd.Units = asked[n:], cmd.Units[n:]
	}
	return bytes, nil
}

// unitToTake names a unit as the secondary has it. One without rows is deleted, so that a large one, whose rows are not
// known, has to be named so.
func unitToTake(key []byte, found *verify.Unit) (unit primary.TakeUnit, bytes uint64) {
	unit = primary.TakeUnit{Key: key, Large: found.Large}
	for _, r := range found.Rows {
		unit.Rows = append(unit.Rows, primary.TakeRow(r))
		bytes += uint64(len(r.Key) + len(r.Value))
	}
	return unit, bytes
}

func (s *settlingRows) tooLarge(u *settledUnit) {
	s.l.o.Logger.Warn("an object is too large to be taken from the secondary; it stays as it is at the primary, and the secondary's is "+
		"in the lost-and-found there", "location", s.l.o.Name, "account", s.of.account, "range", s.of.rng, "key", fmt.Sprintf("%x", u.key))
}

// fateTaken words what became of a unit.
func fateTaken(o primary.TakeOutcome, u *primary.TakeUnit) verify.Repaired {
	switch o {
	case primary.TakeTaken:
		if len(u.Rows) == 0 {
			return verify.Repaired{Fate: verify.FateDeleted}
		}
		return verify.Repaired{Fate: verify.FateSet}
	case primary.TakeSame, primary.TakeWritten, primary.TakeLarge:
		return verify.Repaired{Fate: fateRepair}
	case primary.TakeGone:
		return verify.Repaired{Fate: verify.FateGone}
	case primary.TakeNoPayload, primary.TakeAgain:
		return verify.Repaired{Fate: verify.FateWaits}
	case primary.TakeUnreadable:
		return verify.Repaired{Fate: verify.FateNot, Reason: "it cannot be decoded at the secondary"}
	case primary.TakeLater, primary.TakeRefused:
	}
	return verify.Repaired{Fate: verify.FateNot, Reason: "the stream is not settled any more for the side of the secondary"}
}

// fetch makes payload of the secondary durable here, as far as it is not.
func (s *settlingRows) fetch(ctx context.Context, refs []extent.Ref, read func(context.Context, int) error) (bytes uint64, err error) {
	for _, ref := range refs {
		if s.stamp.HasChunk(ref) {
			continue
		}
		if err := read(ctx, int(ref.Length)); err != nil {
			return bytes, err
		}
		type answer struct {
			data []byte
			err  error
		}
		got := make(chan answer, 1)
		s.l.far.Source.Chunk(ref, func(data []byte, err error) { got <- answer{data, err} })
		a := <-got // Every call ends.
		if a.err != nil {
			return bytes, a.err
		}
		if err := s.stamp.PutChunk(ctx, ref, a.data); err != nil {
			return bytes, err
		}
		bytes += uint64(ref.Length)
	}
	return bytes, nil
}
