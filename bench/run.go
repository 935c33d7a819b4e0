package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/internal/clock"
)

const (
	// retryPause follows a failed operation, so that a server that refuses is not
	// hammered and the count of errors means something.
	retryPause = 10 * time.Millisecond
	// preloadWait bounds the writing of the objects that a read workload needs.
	preloadWait = time.Hour
	// wrongValue is the error of a read that answered with something else than what
	// was written.
	wrongValue = "wrong value"
)

// worker is one connection and what it did.
type worker struct {
	id int
	conn
	*signer
	*workload
	clock clock.Clock
	rec   *recorder
	rng   *rand.Rand
	quota *quota
	// next is the number of the next object to write, failed those not written.
	next    int
	failed  map[int]bool
	request []byte
	// failure ends the run, and done this worker's part of it.
	failure error
	done    bool
}

func newWorker(o Options, t target, name string, id int, clk clock.Clock) *worker {
	return &worker{
		id: id, conn: conn{address: t.address}, signer: newSigner(t), workload: newWorkload(o, name, id),
		clock: clk, rec: newRecorder(), rng: rand.New(rand.NewPCG(uint64(id), 1)), failed: map[int]bool{},
	}
}

// send makes one call and returns the answer and when it began and ended.
func (w *worker) send(ctx context.Context, c *call) (a answer, began, ended time.Time, err error) {
	began = w.clock.Now()
	w.request = w.append(w.request[:0], c, began)
	a, err = w.do(ctx, w.request, began)
	a.wanted = c.status
	return a, began, w.clock.Now(), err
}

// step makes one timed operation and records it if it lies within the window.
func (w *worker) step(ctx context.Context, window span) {
	switch {
	case w.messages != nil:
		w.operate(ctx, window)
	case w.operation != nil:
		w.perform(ctx, window)
	case w.scan != nil:
		w.look(ctx, window)
	case w.reads:
		o := object{w.id, w.rng.IntN(w.next)}
		a, began, ended, err := w.send(ctx, w.read(o))
		problem := outcome(a, err)
		if problem == "" && w.check(o, a.body) != nil {
			problem = wrongValue
		}
		w.record(ctx, window, span{began, ended}, problem, len(a.body))
	default:
		o := object{w.id, w.next}
		w.next++
		c := w.write(o)
		a, began, ended, err := w.send(ctx, c)
		problem := outcome(a, err)
		if problem != "" {
			w.failed[o.n] = true
		}
		w.record(ctx, window, span{began, ended}, problem, len(c.body))
	}
}

// look makes one scan, of as many requests as it takes.
func (w *worker) look(ctx context.Context, window span) {
	start, moved := w.clock.Now(), 0
	for more := true; more; {
		a, _, ended, err := w.send(ctx, w.scan.next())
		problem := outcome(a, err)
		if problem != "" {
			a = answer{} // A scan that failed begins at the start again.
		}
		if more, err = w.scan.check(a); err != nil && problem == "" {
			problem = wrongValue
		}
		moved += len(a.body)
		if more = more && ctx.Err() == nil; !more {
			w.record(ctx, window, span{start, ended}, problem, moved)
		}
	}
}

// record takes an operation that lies within the window, and after one that failed it pauses.
func (w *worker) record(ctx context.Context, window, took span, problem string, moved int) {
	if took.start.Before(window.start) || took.end.After(window.end) {
		return
	}
	if problem == "" {
		w.rec.ok(took.end.Sub(took.start), moved)
		w.quota.add(moved)
		return
	}
	w.rec.fail(problem)
	pause(ctx, retryPause)
}

// outcome names what went wrong, "" if nothing did.
func outcome(a answer, err error) string {
	switch {
	case err != nil:
		return "no answer"
	case a.wanted == a.status:
		return ""
	case a.wanted > 0:
	case a.status == http.StatusAccepted: // Of a transaction, whose parts say what became of it.
		return batchOutcome(a.body)
	case a.status >= 200 && a.status < 300:
		return ""
	}
	return strings.TrimSpace(strconv.Itoa(a.status) + " " + codeOf(a.body))
}

// codeOf finds the storage error code in a JSON or XML body.
func codeOf(body []byte) string {
	for _, mark := range [...][2]string{{`"code":"`, `"`}, {"<Code>", "<"}} {
		if _, rest, found := strings.Cut(string(body), mark[0]); found {
			code, _, _ := strings.Cut(rest, mark[1])
			return code
		}
	}
	return ""
}

// span is a stretch of time.
type span struct{ start, end time.Time }

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// measure makes one run of requests and prints its result.
func measure(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error {
	server, err := watchServer(ctx, o, clk)
	if err != nil {
		return err
	}
	workers, err := startWorkers(ctx, o, clk)
	if err != nil {
		return err
	}
	defer closeAll(workers)
	depth := 0
	if workers[0].messages != nil {
		if depth, err = deepen(ctx, o.Depth, workers); err != nil {
			return err
		}
	}
	if err := server.awaitRest(ctx, clk, o.Rest); err != nil {
		return err
	}
	res, err := timed(ctx, o, clk, server, workers)
	if err != nil {
		return err
	}
	res.verify(ctx, o, clk, depth, workers)
	if err := res.print(out, o.JSON); err != nil {
		return err
	}
	if len(res.Void) > 0 {
		return fmt.Errorf("%w: %s", errVoid, strings.Join(res.Void, "; "))
	}
	return nil
}

// finished reports whether a worker has nothing to do any more before its time.
func (w *worker) finished() bool {
	return w.failure != nil || w.done || w.quota.met() || w.messages != nil && w.messages.drained
}

// verify looks whether the server has what was written.
func (r *result) verify(ctx context.Context, o Options, clk clock.Clock, depth int, workers []*worker) {
	if workers[0].messages != nil {
		var void []string
		r.Queue, void = settle(ctx, o, depth, workers)
		r.Void = append(r.Void, void...)
		return
	}
	var err error
	if r.ReadBack, err = readBack(ctx, o, clk, workers); err != nil {
		r.Void = append(r.Void, err.Error())
	}
}

// startWorkers returns the connections of a run, with all that they need at the server.
func startWorkers(ctx context.Context, o Options, clk clock.Clock) ([]*worker, error) {
	t, err := newTarget(o, false)
	if err != nil {
		return nil, err
	}
	name := o.Table
	if name == "" {
		name = "bench" + strconv.FormatInt(clk.Now().UnixMilli(), 36)
	}
	workers := make([]*worker, o.Concurrency)
	limit := newQuota(o.Bytes)
	for i := range workers {
		workers[i] = newWorker(o, t, name, i, clk)
		workers[i].quota = limit
	}
	if err := prepare(ctx, o, workers); err != nil {
		closeAll(workers)
		return nil, err
	}
	return workers, nil
}

func closeAll(workers []*worker) {
	for _, w := range workers {
		w.close()
	}
}

// prepare makes the table, container or queue, and the objects that reads will find.
func prepare(ctx context.Context, o Options, workers []*worker) error {
	first := workers[0]
	a, _, _, err := first.send(ctx, first.container())
	if problem := outcome(a, err); problem != "" && (o.Table == "" || problem != "409 TableAlreadyExists") {
		return fmt.Errorf("creating %s at %s: %s: %w", first.name, o.Endpoint, problem, errors.Join(err, bodyError(a)))
	}
	if first.messages == nil && !first.blob && o.Depth > 0 {
		if err := fillTable(ctx, o, workers); err != nil {
			return err
		}
	}
	ready := func(ctx context.Context, w *worker) error { return w.preload(ctx) }
	switch {
	case first.operation != nil:
		ready = func(ctx context.Context, w *worker) error { return w.operation.ready(ctx, w) }
	case !first.reads:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, preloadWait)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		g.Go(func() error { return ready(ctx, w) })
	}
	return g.Wait()
}

func bodyError(a answer) error {
	if len(a.body) == 0 {
		return nil
	}
	return fmt.Errorf("%.300q", a.body)
}

// timed runs all workers through warm-up and window and adds up what they saw. A window
// ends before its time when the workers have moved their quota.
func timed(ctx context.Context, o Options, clk clock.Clock, server *server, workers []*worker) (result, error) {
	start := clk.Now().Add(o.Warmup)
	window := span{start, start.Add(o.Duration)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	working, done := context.WithCancel(ctx)
	defer done()
	var active sync.WaitGroup
	for _, w := range workers {
		active.Add(1)
		g.Go(func() error {
			defer active.Done()
			for ctx.Err() == nil && w.clock.Now().Before(window.end) && !w.finished() {
				w.step(ctx, window)
			}
			return errors.Join(w.failure, ctx.Err())
		})
	}
	g.Go(func() error {
		active.Wait()
		o.Duration = min(o.Duration, clk.Now().Sub(window.start))
		done()
		return nil
	})
	var use usage
	var lag lagSamples
	g.Go(func() (err error) {
		use, err = measureUsage(working, clk, window, server)
		return err
	})
	g.Go(func() error {
		lag = server.sample(working, clk, window)
		return nil
	})
	err := g.Wait()
	if err != nil {
		return result{}, err
	}
	total := newRecorder()
	for _, w := range workers {
		total.merge(w.rec)
	}
	res := newResult(o, total, use, lag)
	res.ServerPeakBytes, err = server.peak()
	return res, err
}
