package drill

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"antipode/client/admin"
)

// Target is the account as clients reach it. Its methods may be called concurrently, for different rows.
type Target interface {
	// Write adds a value to a row of the drill: each value is one object, which nobody writes twice. It is there
	// once Write has returned nil, and may be there after an error.
	Write(ctx context.Context, row int, value uint64) error
	// Read reads an object of a row, through the -secondary name with secondary.
	Read(ctx context.Context, row int, secondary bool) error
	// Values returns all values that a row has, through the primary's name.
	Values(ctx context.Context, row int) ([]uint64, error)
}

// Move is a step of a drill, such as a failover. It returns when it is done.
type Move struct {
	// Name is for people.
	Name string
	Do   func(ctx context.Context) error
	// Fails is set where the primary is stopped, or replaced without being asked. The time without service of an unplanned
	// failover counts from its beginning. Once it has returned, the former primary acknowledges nothing that stays.
	Fails bool
	// FailsIf, if it is set, has the move be one that Fails, in place of one before; it is called after Do.
	FailsIf func() bool
	// AtOnce has the next move begin without a pause.
	AtOnce bool
	// Skip reports that the move is not needed; nil is never.
	Skip func() bool
}

// Options configures a drill. Target and Now are required.
type Options struct {
	Target Target
	// Now is a clock that does not step; Wait waits, or returns an error when ctx ends.
	Now  func() time.Duration
	Wait func(ctx context.Context, d time.Duration) error
	// Rows are written by one client each. 0 is 8.
	Rows int
	// Pause lies between two requests of a client. 0 is 10 ms.
	Pause time.Duration
	// Calm is how long clients run before the first move, between moves, and after the last. 0 is 5 s.
	Calm time.Duration
	// Timeout bounds each request. 0 is 10 s.
	Timeout time.Duration
	// OnMove is called when a move begins, nil for nobody.
	OnMove func(name string)
}

func (o Options) withDefaults() Options {
	if o.Rows == 0 {
		o.Rows = 8
	}
	if o.Pause == 0 {
		o.Pause = 10 * time.Millisecond
	}
	if o.Calm == 0 {
		o.Calm = 5 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	return o
}

// Run runs a drill. It ends with the first move that fails, and reports what was measured until then; the error is that
// move's, or of the reads at the end, by which lost writes are found.
func Run(ctx context.Context, o Options, moves ...Move) (*Report, error) {
	d := &drill{o: o.withDefaults()}
	d.began = d.o.Now()
	d.acked = make([][]write, d.o.Rows)
	clients, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for row := range d.o.Rows {
		wg.Go(func() { d.write(clients, row) })
	}
	for _, k := range []Kind{PrimaryReads, SecondaryReads} {
		wg.Go(func() { d.read(clients, k) })
	}
	report := &Report{LostWrites: []LostWrite{}}
	err := d.moves(ctx, report, moves)
	stop()
	wg.Wait()
	d.fill(report)
	if ctx.Err() != nil {
		return report, ctx.Err()
	}
	checkErr := d.check(ctx, report)
	if checkErr == nil && report.Unplanned != nil {
		d.measure(report)
	}
	if err == nil {
		err = checkErr
	}
	return report, err
}

// moves carries out the moves while the clients run.
func (d *drill) moves(ctx context.Context, report *Report, moves []Move) error {
	err := d.o.Wait(ctx, d.o.Calm)
	for _, m := range moves {
		if err != nil {
			break
		}
		if m.Skip != nil && m.Skip() {
			continue
		}
		if d.o.OnMove != nil {
			d.o.OnMove(m.Name)
		}
		span := Span{Name: m.Name, From: d.since()}
		if err = m.Do(ctx); err != nil {
			err = fmt.Errorf("%s: %w", m.Name, err)
			span.Failed = err.Error()
		}
		span.To = d.since()
		report.Moves = append(report.Moves, span)
		if m.Fails || m.FailsIf != nil && m.FailsIf() {
			report.Unplanned = &Unplanned{From: span.From, alone: span.To, Stated: []admin.ServiceLoss{}, Claims: []admin.LostClaim{}}
		}
		if err == nil && !m.AtOnce {
			err = d.o.Wait(ctx, d.o.Calm)
		}
	}
	return err
}

// drill is one Run.
type drill struct {
	o     Options
	began time.Duration

	mu sync.Mutex
	// requests are all that have ended, in the order of their ends.
	requests []request
	acked    [][]write // by row, in the order of their values
}

// write is a write that was acknowledged.
type write struct {
	value       uint64
	from, acked time.Duration
}

// request is one request that has ended.
type request struct {
	kind     Kind
	from, to time.Duration
	failed   string
}

func (d *drill) since() time.Duration { return d.o.Now() - d.began }

// write writes a row until ctx ends.
func (d *drill) write(ctx context.Context, row int) {
	for value := uint64(1); ctx.Err() == nil; value++ {
		r, err := d.request(ctx, Writes, func(ctx context.Context) error { return d.o.Target.Write(ctx, row, value) })
		if err == nil {
			d.mu.Lock()
			d.acked[row] = append(d.acked[row], write{value, r.from, r.to})
			d.mu.Unlock()
		}
		if d.o.Wait(ctx, d.o.Pause) != nil {
			return
		}
	}
}

// read reads through a name until ctx ends.
func (d *drill) read(ctx context.Context, k Kind) {
	for n := 0; ctx.Err() == nil; n++ {
		_, _ = d.request(ctx, k, func(ctx context.Context) error {
			return d.o.Target.Read(ctx, n%d.o.Rows, k == SecondaryReads)
		})
		if d.o.Wait(ctx, d.o.Pause) != nil {
			return
		}
	}
}

// request makes a request, and keeps how it ended. A request that the end of the drill has cut off counts for
// nothing.
func (d *drill) request(ctx context.Context, k Kind, f func(ctx context.Context) error) (request, error) {
	one, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	r := request{kind: k, from: d.since()}
	err := f(one)
	r.to = d.since()
	if err != nil && ctx.Err() != nil {
		return r, err
	}
	if err != nil {
		r.failed = err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests, r)
	return r, err
}

// checkTries is how often a row is read at the end.
const checkTries = 20

// check finds the acknowledged writes that are gone.
func (d *drill) check(ctx context.Context, report *Report) error {
	for row, acked := range d.acked {
		var have []uint64
		var err error
		for range checkTries {
			one, cancel := context.WithTimeout(ctx, d.o.Timeout)
			have, err = d.o.Target.Values(one, row)
			cancel()
			if err == nil || d.o.Wait(ctx, 10*d.o.Pause) != nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("the last read of row %d: %w", row, err)
		}
		slices.Sort(have)
		for _, w := range acked {
			if _, ok := slices.BinarySearch(have, w.value); !ok {
				report.LostWrites = append(report.LostWrites, LostWrite{Row: row, Value: w.value, Began: w.from, Acked: w.acked})
			}
		}
	}
	slices.SortStableFunc(report.LostWrites, func(a, b LostWrite) int { return int(a.Acked - b.Acked) })
	report.Lost, report.Checked = len(report.LostWrites), true
	return nil
}
