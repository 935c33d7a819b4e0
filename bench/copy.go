package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
)

// workloadCopy measures what the copy of an account costs those who write to it. It takes the p99 of inserts at
// --concurrency, in a separate antipode dev whose account holds --bytes of blobs of 4 KiB. It does so while the copy
// is at rest and while it is made again at --copy-rate. A pair is one run of each, and every other pair begins with
// the copy.
const workloadCopy = "copy-cost"

const (
	// copyBytes is how much the account holds by default, and copyDuration how long each run measures.
	copyBytes    = 256 << 20
	copyDuration = 6 * time.Second
	// copyFilled writes the blobs.
	copyFilled = "blob-put-4k"
	// copyWait bounds the rest of a copy once its rate is lifted, and copyPoll is the time between two looks.
	copyWait = 10 * time.Minute
	copyPoll = 50 * time.Millisecond
)

var errCopied = fmt.Errorf("%w: the copy was complete before the run: give more --bytes, or a lower --copy-rate", errVoid)

// copyRun is what one run came to.
type copyRun struct {
	InsertP99Ms      float64 `json:"insert_p99_ms"`
	InsertsPerSecond float64 `json:"inserts_per_second"`
	// CopyMBPerSecond is what was copied meanwhile: 0 at rest.
	CopyMBPerSecond float64 `json:"copy_mb_per_second"`
}

// copyPair is two runs, one after the other.
type copyPair struct {
	Without copyRun `json:"without"`
	With    copyRun `json:"with"`
}

// copyCost is what all pairs came to: the median of the pairs' ratios, least and most.
type copyCost struct {
	Workload    string     `json:"workload"`
	Concurrency int        `json:"concurrency"`
	Bytes       int64      `json:"bytes"`
	Rate        int64      `json:"copy_rate"`
	Pairs       []copyPair `json:"pairs"`
	InsertRatio spread     `json:"insert_p99_ratio"`
}

func measureCopy(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error {
	return inFolder(o, func(dir string) (err error) {
		l, err := launch(ctx, o, dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.end()) }()
		filling := o
		filling.Workload, filling.Warmup, filling.Duration = copyFilled, 0, bytesDuration
		if _, err := l.timed(ctx, filling, clk); err != nil {
			return fmt.Errorf("filling the server: %w", err)
		}
		res := copyCost{Workload: o.Workload, Concurrency: o.Concurrency, Bytes: int64(o.Bytes), Rate: int64(o.CopyRate)}
		c := copying{l, geo.Account(o.Account), o, clk}
		var ratios []float64
		for n := range o.Pairs {
			p, err := c.pair(ctx, n%2 == 1)
			if err != nil {
				return fmt.Errorf("pair %d: %w", n+1, err)
			}
			res.Pairs = append(res.Pairs, p)
			ratios = append(ratios, p.With.InsertP99Ms/p.Without.InsertP99Ms)
		}
		res.InsertRatio = spreadOf(ratios)
		return res.print(out, o.JSON)
	})
}

// copying is a server, the account that is written and copied, and how.
type copying struct {
	*launched
	account geo.Account
	o       Options
	clock   clock.Clock
}

func (c copying) pair(ctx context.Context, copyFirst bool) (p copyPair, err error) {
	runs := []func() error{
		func() (err error) { p.Without, err = c.insert(ctx); return err },
		func() (err error) { p.With, err = c.copied(ctx); return err },
	}
	if copyFirst {
		slices.Reverse(runs)
	}
	for _, run := range runs {
		if err := c.rests(ctx); err != nil {
			return p, err
		}
		if err := run(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// insert makes a run of inserts.
func (c copying) insert(ctx context.Context) (copyRun, error) {
	o := c.o
	o.Workload, o.Bytes = workloadInsert, 0
	res, err := c.timed(ctx, o, c.clock)
	return copyRun{InsertP99Ms: res.P99Ms, InsertsPerSecond: res.OpsPerSecond}, err
}

// copied makes a run of inserts while the copy is made again. One that ended before the run has no figures.
func (c copying) copied(ctx context.Context) (run copyRun, err error) {
	rate, none := uint64(c.o.CopyRate), uint64(0)
	if _, err := c.Admin().UpdateAccount(ctx, c.account, admin.UpdateAccount{Rebuild: true, BytesPerSecond: &rate}); err != nil {
		return run, err
	}
	before, err := c.progress(ctx, func(a admin.AccountInfo) bool { return a.Operation == "" || a.Copied != nil && a.Copied.Rows > 0 })
	if err != nil {
		return run, err
	}
	if before.Copied == nil {
		return run, errCopied
	}
	began := c.clock.Now()
	if run, err = c.insert(ctx); err != nil {
		return run, err
	}
	after, err := c.progress(ctx, func(admin.AccountInfo) bool { return true })
	if err != nil {
		return run, err
	}
	if after.Copied == nil || after.Copied.Percent == nil || *after.Copied.Percent == 100 {
		return run, errCopied
	}
	run.CopyMBPerSecond = (sizeOf(after) - sizeOf(before)) / 1e6 / c.clock.Now().Sub(began).Seconds()
	_, err = c.Admin().UpdateAccount(ctx, c.account, admin.UpdateAccount{BytesPerSecond: &none})
	return run, err
}

// sizeOf is how many bytes are copied.
func sizeOf(a admin.AccountInfo) float64 { return float64(a.Copied.Bytes + a.Copied.PayloadBytes) }

// rests waits until nothing is under way for the account, and nothing waits for the secondary.
func (c copying) rests(ctx context.Context) error {
	_, err := c.progress(ctx, func(a admin.AccountInfo) bool { return a.Operation == "" })
	return err
}

// progress waits until the account is as ok says.
func (c copying) progress(ctx context.Context, ok func(admin.AccountInfo) bool) (a admin.AccountInfo, err error) {
	ctx, cancel := context.WithTimeout(ctx, copyWait)
	defer cancel()
	for {
		if a, err = c.Admin().Account(ctx, c.account); err == nil && ok(a) {
			return a, nil
		}
		if ctx.Err() != nil {
			return a, fmt.Errorf("account %s: %+v: %w", c.account, a, errors.Join(err, ctx.Err()))
		}
		pause(ctx, copyPoll)
	}
}

// print writes the result for people, or as one line of JSON.
func (c *copyCost) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(c)
	}
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	line("%s: %d pairs, %d connections, %v of blobs, a copy at %v a second at most (0: no bound)", c.Workload, len(c.Pairs), c.Concurrency, byteSize(c.Bytes), byteSize(c.Rate))
	line("  insert    p99 with the copy %.2f times (median; %.2f to %.2f)", c.InsertRatio.Median, c.InsertRatio.Least, c.InsertRatio.Most)
	for i, p := range c.Pairs {
		line("  pair %d    insert p99 %.2f, %.2f ms, %.0f, %.0f/s; copied %.1f MB/s", i+1,
			p.Without.InsertP99Ms, p.With.InsertP99Ms, p.Without.InsertsPerSecond, p.With.InsertsPerSecond, p.With.CopyMBPerSecond)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
