package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"antipode/internal/clock"
)

// workloadScrub measures what the scrub costs clients: the p99 of gets and of inserts at
// --concurrency, of a separate antipode dev that holds --bytes of blobs, without the scrub and
// with it reading all the time. The server is started again for each run; a pair is one of each,
// and every other pair begins with the scrub.
const workloadScrub = "scrub-cost"

const (
	// scrubBytes is how much the server holds by default, and scrubDuration how long each
	// run measures.
	scrubBytes    = 1 << 30
	scrubDuration = 6 * time.Second
	// scrubNever is a period in which a scrub of a few GiB reads nothing in minutes.
	scrubNever = 10 * 365 * 24 * time.Hour
	// scrubDelay is within which time of a node's start its scrub begins, or within a period
	// that is shorter. Each run waits for it, those without the scrub too.
	scrubDelay = 11 * time.Second
	// scrubFilled writes the blobs.
	scrubFilled = "blob-put-4m"
)

// scrubRun is what one run came to, of a server with the scrub or without.
type scrubRun struct {
	GetP99Ms       float64 `json:"get_p99_ms"`
	InsertP99Ms    float64 `json:"insert_p99_ms"`
	GetsPerSecond  float64 `json:"gets_per_second"`
	InsertsPerSec  float64 `json:"inserts_per_second"`
	ScrubMBPerSecs float64 `json:"scrub_mb_per_second"`
}

// scrubPair is two runs, one after the other.
type scrubPair struct {
	Without scrubRun `json:"without"`
	With    scrubRun `json:"with"`
}

// scrubCost is what all pairs came to: medians of the pairs' ratios, least and most.
type scrubCost struct {
	Workload    string      `json:"workload"`
	Concurrency int         `json:"concurrency"`
	Bytes       int64       `json:"bytes"`
	Period      string      `json:"scrub_period"`
	Pairs       []scrubPair `json:"pairs"`
	GetRatio    spread      `json:"get_p99_ratio"`
	InsertRatio spread      `json:"insert_p99_ratio"`
}

// spread is a median and what it is the median of.
type spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

func spreadOf(v []float64) spread {
	v = slices.Sorted(slices.Values(v))
	return spread{(v[(len(v)-1)/2] + v[len(v)/2]) / 2, v[0], v[len(v)-1]}
}

func measureScrub(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error {
	return inFolder(o, func(dir string) error {
		res := scrubCost{Workload: o.Workload, Concurrency: o.Concurrency, Bytes: int64(o.Bytes), Period: o.ScrubPeriod.String()}
		if err := fill(ctx, o, dir, clk); err != nil {
			return fmt.Errorf("filling the server: %w", err)
		}
		var gets, inserts []float64
		for n := range o.Pairs {
			var p scrubPair
			runs := []struct {
				period time.Duration
				run    *scrubRun
			}{{scrubNever, &p.Without}, {o.ScrubPeriod, &p.With}}
			if n%2 == 1 {
				slices.Reverse(runs)
			}
			for _, r := range runs {
				if err := r.run.measure(ctx, o, r.period, dir, clk); err != nil {
					return fmt.Errorf("pair %d, scrub period %v: %w", n+1, r.period, err)
				}
			}
			if p.With.ScrubMBPerSecs == 0 || p.Without.ScrubMBPerSecs > p.With.ScrubMBPerSecs/10 {
				return fmt.Errorf("%w: the scrub read %.1f MB/s with it and %.1f without", errVoid, p.With.ScrubMBPerSecs, p.Without.ScrubMBPerSecs)
			}
			res.Pairs = append(res.Pairs, p)
			gets = append(gets, p.With.GetP99Ms/p.Without.GetP99Ms)
			inserts = append(inserts, p.With.InsertP99Ms/p.Without.InsertP99Ms)
		}
		res.GetRatio, res.InsertRatio = spreadOf(gets), spreadOf(inserts)
		return res.print(out, o.JSON)
	})
}

// fill writes --bytes of blobs.
func fill(ctx context.Context, o Options, dir string, clk clock.Clock) (err error) {
	l, err := launch(ctx, o, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	o.Workload, o.Warmup, o.Duration = scrubFilled, 0, bytesDuration
	_, err = l.timed(ctx, o, clk)
	return err
}

// timed makes the timed part of a run against this server. A run with an error has no
// figures.
func (l *launched) timed(ctx context.Context, o Options, clk clock.Clock) (result, error) {
	o = l.aim(o)
	workers, err := startWorkers(ctx, o, clk)
	if err != nil {
		return result{}, err
	}
	defer closeAll(workers)
	return timedWhole(ctx, o, clk, l.PID(), workers)
}

func timedWhole(ctx context.Context, o Options, clk clock.Clock, pid int, workers []*worker) (result, error) {
	res, err := timed(ctx, o, clk, &server{pid: pid}, workers)
	if err == nil && (len(res.Void) > 0 || len(res.Errors) > 0) {
		err = fmt.Errorf("%w: %s: errors %s; %s", errVoid, o.Workload, errorText(res.Errors), strings.Join(res.Void, "; "))
	}
	return res, err
}

// measure makes a run of a server with this scrub period.
func (r *scrubRun) measure(ctx context.Context, o Options, period time.Duration, dir string, clk clock.Clock) (err error) {
	began := clk.Now()
	l, err := launch(ctx, o, dir, "--scrub-period", period.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	o.Bytes = 0
	getting := o
	getting.Workload = workloadGet
	getting = l.aim(getting)
	gets, err := startWorkers(ctx, getting, clk)
	if err != nil {
		return err
	}
	defer closeAll(gets)
	pause(ctx, began.Add(launchWaitOf(o)).Sub(clk.Now()))
	before, err := l.scrubbed(ctx)
	if err != nil {
		return err
	}
	begun := clk.Now()
	get, err := timedWhole(ctx, getting, clk, l.PID(), gets)
	if err != nil {
		return err
	}
	o.Workload = workloadInsert
	insert, err := l.timed(ctx, o, clk)
	if err != nil {
		return err
	}
	after, err := l.scrubbed(ctx)
	if err != nil {
		return err
	}
	*r = scrubRun{
		get.P99Ms, insert.P99Ms, get.OpsPerSecond, insert.OpsPerSecond,
		(after - before) / 1e6 / clk.Now().Sub(begun).Seconds(),
	}
	return nil
}

// launchWaitOf is how long after its launch a server scrubs.
func launchWaitOf(o Options) time.Duration { return min(scrubDelay, time.Second+o.ScrubPeriod) }

// scrubbed is how many bytes the scrubs of all nodes have read since the server began.
func (l *launched) scrubbed(ctx context.Context) (sum float64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.AdminURL(0)+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := l.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "antipode_scrub_bytes_total{") {
			continue
		}
		value, err := strconv.ParseFloat(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %q: %w", r.URL, lines.Text(), err)
		}
		sum += value
	}
	return sum, nil
}

// print writes the result for people, or as one line of JSON.
func (c *scrubCost) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(c)
	}
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	line("%s: %d pairs, %d connections, %v of blobs in each location, a scrub in %s", c.Workload, len(c.Pairs), c.Concurrency, byteSize(c.Bytes), c.Period)
	line("  get       p99 with the scrub %.2f times (median; %.2f to %.2f)", c.GetRatio.Median, c.GetRatio.Least, c.GetRatio.Most)
	line("  insert    p99 with the scrub %.2f times (median; %.2f to %.2f)", c.InsertRatio.Median, c.InsertRatio.Least, c.InsertRatio.Most)
	for i, p := range c.Pairs {
		line("  pair %d    get p99 %.2f, %.2f ms, %.0f, %.0f/s; insert p99 %.2f, %.2f ms, %.0f, %.0f/s; scrub %.1f, %.1f MB/s over all nodes", i+1,
			p.Without.GetP99Ms, p.With.GetP99Ms, p.Without.GetsPerSecond, p.With.GetsPerSecond,
			p.Without.InsertP99Ms, p.With.InsertP99Ms, p.Without.InsertsPerSec, p.With.InsertsPerSec,
			p.Without.ScrubMBPerSecs, p.With.ScrubMBPerSecs)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
