package services

import (
	"context"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
)

// Bounds of one page of a scan.
const (
	// scanTimeMax is how long one page may take: the service's own bound of a query
	// (protocol/table.md 12).
	scanTimeMax = 5 * time.Second
	// scanWorkMax bounds the work of one page, in values read or compared: a second or
	// two of one processor.
	scanWorkMax = 20_000_000
	// scanLookEvery is the work between two looks at the context and the clock: well below a
	// millisecond.
	scanLookEvery = 2_000
)

// BytesWork is the work of reading or comparing n bytes of values.
func BytesWork(n int) int { return n / 64 }

// Budget bounds the work of one page of a scan, whatever the number of rows that it
// finds: a page whose budget is spent ends with a continuation. It is one request's, and
// not safe for concurrent use.
//
// Invariant: every page makes progress. Spend is called after a row was examined, so a
// budget is never spent before the first row.
type Budget struct {
	clock clock.Clock
	until time.Duration // on clock.Mono
	left  int
	look  int // work left until the context and the clock are read again

	// scans shares the processors; nil if nothing is shared.
	scans   *Scans
	account geo.Account
	slice   int  // work left until another scan has its turn
	holds   bool // a slot of scans
}

// NewBudget returns the budget of a page that begins now. A page takes at most half of the time
// that ctx has left. So a client with a short timeout gets a page with a continuation instead of an
// error.
func NewBudget(ctx context.Context, c clock.Clock) *Budget {
	return NewWorkBudget(ctx, c, scanWorkMax)
}

// NewWorkBudget is NewBudget with another bound on the work.
func NewWorkBudget(ctx context.Context, c clock.Clock, workMax int) *Budget {
	limit := scanTimeMax
	if end, bounded := ctx.Deadline(); bounded {
		limit = min(limit, end.Sub(clock.System{}.Now())/2) // Contexts live in the machine's time.
	}
	return &Budget{clock: c, until: c.Mono() + limit, left: workMax, look: scanLookEvery}
}

// Spend takes work from the budget, in values read or compared, and reports whether the page may
// go on. Once ctx has ended, the error is that of ctx: the request has no answer.
func (b *Budget) Spend(ctx context.Context, work int) (more bool, err error) {
	b.left -= work
	b.look -= work
	b.slice -= work
	if b.look <= 0 {
		b.look = scanLookEvery
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if b.slice <= 0 {
			if err := b.takeTurn(ctx); err != nil {
				return false, err
			}
		}
		if b.clock.Mono() >= b.until {
			b.left = 0
		}
	}
	return b.left > 0, nil
}

// takeTurn gives the slot to the next scan and waits for another one, until the page's time is
// over: then the page ends with the rows that it has.
func (b *Budget) takeTurn(ctx context.Context) error {
	if b.scans == nil {
		return nil
	}
	turn, cancel := context.WithTimeout(ctx, b.until-b.clock.Mono())
	defer cancel()
	held := b.holds
	b.holds = false
	if b.scans.enter(turn, b.account, held) != nil {
		b.left = 0
		return ctx.Err()
	}
	b.holds, b.slice = true, scanSliceWork
	return nil
}

// End gives back the slot that the page holds. Calling it again does nothing.
func (b *Budget) End() {
	if b.holds {
		b.holds = false
		b.scans.leave()
	}
}
