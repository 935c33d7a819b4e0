package scrub

import (
	"context"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/outbox"
)

// The outboxes are accounted for a hundred rows at a time, at accountRate, and again a while after all were. Rows
// that are read stay in the cache of the state store, which holds all that a node may use for it: while the other
// location is away for long, a fast walk would fill it with rows that nobody else reads.
const (
	accountRows  = 100
	accountRest  = 10 * time.Millisecond
	accountRate  = 32 << 10 // bytes a second
	accountAgain = time.Minute
)

// account is a walk over the outboxes of the node.
type account struct {
	// ranges are still to be walked, the first from place on.
	ranges []Range
	place  outbox.Place
	sum    outbox.Tally
}

// accountStep accounts for some records of the outboxes: see outbox.Account. Findings are reported
// and counted when all were walked, and change nothing: one replica may differ, or all.
func (s *Scrubber) accountStep(context.Context) time.Duration {
	walk := &s.account
	if !s.o.Outboxes || len(s.o.Ranges) == 0 {
		return accountAgain
	}
	if len(walk.ranges) == 0 {
		*walk = account{ranges: s.o.Ranges}
	}
	id := walk.ranges[0].ID
	next, tally, err := s.accountRows(id, walk.place)
	if err != nil {
		*walk = account{}
		s.o.Logger.Error("cannot read the outbox; the scrub of the state store reports what is damaged", "range", id, "error", err)
		return accountAgain
	}
	walk.sum.Add(tally)
	s.counts.accountedRecords.Add(uint64(tally.Records))
	if walk.place = next; !next.Begun() {
		walk.ranges = walk.ranges[1:]
	}
	if len(walk.ranges) > 0 {
		return accountRest + time.Duration(float64(tally.Bytes)/accountRate*float64(time.Second))
	}
	s.counts.missingRecords.Store(uint64(walk.sum.Missing))
	s.counts.extraRecords.Store(uint64(walk.sum.Extra))
	if walk.sum.Unaccounted() {
		s.o.Logger.Error("the outbox does not have exactly the records that the other location lacks; if its copy stands, make it again with: antipodectl account rebuild "+
			string(walk.sum.First.Account), "missing", walk.sum.Missing, "extra", walk.sum.Extra, "first", walk.sum.First)
	}
	return accountAgain
}

func (s *Scrubber) accountRows(id geo.RangeID, from outbox.Place) (outbox.Place, outbox.Tally, error) {
	local := keys.RangeLocal(id)
	rows, err := s.o.Rows.ScanDurable(local, keys.PrefixEnd(local))
	if err != nil {
		return from, outbox.Tally{}, err
	}
	next, tally, err := outbox.Account(rows, id, from, accountRows)
	if err != nil {
		err = fmt.Errorf("account for range %d: %w", id, err)
	}
	if closed := rows.Close(); err == nil {
		err = closed
	}
	return next, tally, err
}
