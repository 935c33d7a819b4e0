package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// The requests that operations on a queue are made of.
const (
	stepPut    = "put"
	stepGet    = "get"
	stepDelete = "delete"
)

const (
	// messageBytes is the length of a message's text.
	messageBytes = 100
	// queueEmpty is the error of a get that finds no message.
	queueEmpty = "empty"
	// hideSeconds is longer than a run: a message that comes twice is an error of the server.
	hideSeconds = "86400"
)

// messageKey is the id of a message.
type messageKey [36]byte

// messages is what one connection does to the queue of a run.
type messages struct {
	// run distinguishes the texts of this run, and queue is where they go.
	run, queue string
	id         int
	steps      []string
	// puts and deletes were acknowledged; unsure are those that had no answer, or an error of the server.
	puts, deletes, unsure int
	// wrong counts the texts that are not as they were put.
	wrong int
	got   []messageKey
	// drained: a get found nothing, and nothing will come.
	drained bool
	// times has what each step took.
	times map[string]*recorder

	next          int
	word, body    []byte
	message       messageKey
	receipt, path string
}

func newMessages(o Options, run string, id int, steps []string) *messages {
	m := &messages{run: run, queue: o.Queue, id: id, steps: steps, times: map[string]*recorder{}}
	if m.queue == "" {
		m.queue = run
	}
	m.path = "/" + m.queue + "/messages"
	for _, step := range steps {
		m.times[step] = newRecorder()
	}
	return m
}

func (m *messages) create() *call {
	return &call{method: http.MethodPut, path: "/" + m.queue, blob: true}
}

// call makes the request of a step.
func (m *messages) call(step string) *call {
	switch step {
	case stepPut:
		m.word = fmt.Appendf(m.word[:0], "%s-%d-%d-", m.run, m.id, m.next)
		m.next++
		m.body = append(m.body[:0], "<QueueMessage><MessageText>"...)
		m.body = appendFill(m.body, m.word, messageBytes)
		m.body = append(m.body, "</MessageText></QueueMessage>"...)
		return &call{method: http.MethodPost, path: m.path, contentType: "application/xml", body: m.body, blob: true}
	case stepGet:
		return &call{
			method: http.MethodGet, path: m.path, query: "visibilitytimeout=" + hideSeconds,
			canonical: "\nvisibilitytimeout:" + hideSeconds, blob: true,
		}
	default:
		return &call{
			method: http.MethodDelete, path: m.path + "/" + string(m.message[:]), query: "popreceipt=" + url.QueryEscape(m.receipt),
			canonical: "\npopreceipt:" + m.receipt, blob: true,
		}
	}
}

// count asks how many messages the queue has.
func (m *messages) count() *call {
	return &call{method: http.MethodGet, path: "/" + m.queue, query: "comp=metadata", canonical: "\ncomp:metadata", blob: true}
}

// done takes the answer to a step that succeeded, and names what is wrong with it.
func (m *messages) done(step string, body []byte) string {
	switch step {
	case stepPut:
		m.puts++
	case stepDelete:
		m.deletes++
	default:
		return m.take(body)
	}
	return ""
}

// take reads the answer to a get: it scans for what must come next, since a decoder would cost as much as the server.
func (m *messages) take(body []byte) string {
	if !bytes.Contains(body, []byte("<QueueMessage>")) && bytes.Contains(body, []byte("<QueueMessagesList")) {
		return queueEmpty
	}
	id, rest := element(body, "<MessageId>")
	receipt, rest := element(rest, "<PopReceipt>")
	text, _ := element(rest, "<MessageText>")
	parts := bytes.SplitAfterN(text, []byte("-"), 4)
	if len(parts) < 4 || len(id) != len(m.message) || len(text) != messageBytes || !isFill(text, text[:len(text)-len(parts[3])]) {
		m.wrong++
		return wrongValue
	}
	copy(m.message[:], id)
	m.receipt = string(receipt)
	m.got = append(m.got, m.message)
	return ""
}

// element returns the text of the next element with this start tag, and what follows.
func element(b []byte, start string) (text, rest []byte) {
	_, b, _ = bytes.Cut(b, []byte(start))
	text, rest, _ = bytes.Cut(b, []byte("<"))
	return text, rest
}

// operate makes one timed operation: the steps of the workload, one after the other.
func (w *worker) operate(ctx context.Context, window span) {
	m, start := w.messages, w.clock.Now()
	var took [3]time.Duration
	for i, step := range m.steps {
		a, began, ended, err := w.send(ctx, m.call(step))
		problem := outcome(a, err)
		switch {
		case problem == "":
			problem = m.done(step, a.body)
		case err != nil || a.status >= http.StatusInternalServerError:
			m.unsure++
		}
		if problem == queueEmpty && m.steps[0] == stepGet {
			m.drained = true
			return
		}
		if problem != "" {
			if !start.Before(window.start) && !ended.After(window.end) {
				w.rec.fail(step + ": " + problem)
			}
			pause(ctx, retryPause)
			return
		}
		took[i] = ended.Sub(began)
	}
	end := w.clock.Now()
	if start.Before(window.start) || end.After(window.end) {
		return
	}
	for i, step := range m.steps {
		m.times[step].ok(took[i], 0)
	}
	w.rec.ok(end.Sub(start), messageBytes)
	w.quota.add(messageBytes)
}

// waiting reads how many messages the server counts in the queue.
func (w *worker) waiting(ctx context.Context) (int, error) {
	a, _, _, err := w.send(ctx, w.messages.count())
	if problem := outcome(a, err); problem != "" {
		return 0, fmt.Errorf("messages of queue %s: %s: %w", w.messages.queue, problem, errors.Join(err, bodyError(a)))
	}
	return a.counted, nil
}

// deepen puts messages until the queue has as many as the run asks for, and returns how many it has then.
func deepen(ctx context.Context, depth int, workers []*worker) (int, error) {
	found, err := workers[0].waiting(ctx)
	if err != nil || found >= depth {
		return found, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, w := range workers {
		g.Go(func() error {
			for n := share(depth-found, i, len(workers)); w.messages.puts < n; {
				a, _, _, err := w.send(ctx, w.messages.call(stepPut))
				if problem := outcome(a, err); problem == "" {
					w.messages.puts++
				} else if ctx.Err() != nil {
					return fmt.Errorf("filling the queue: %s: %w", problem, errors.Join(err, ctx.Err()))
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	for _, w := range workers {
		w.messages.puts = 0
	}
	if found, err = workers[0].waiting(ctx); err == nil && found < depth {
		err = fmt.Errorf("queue %s has %d messages after it was filled, not %d", workers[0].messages.queue, found, depth)
	}
	return found, err
}

// queueResult is what became of the messages of a run.
type queueResult struct {
	// Depth is how many there were before, of this run or not.
	Depth   int `json:"depth"`
	Puts    int `json:"puts"`
	Gets    int `json:"gets"`
	Deletes int `json:"deletes"`
	// Unsure counts the requests that may have been done or not.
	Unsure int `json:"unsure"`
	// Primary and Secondary are how many each location counts at the end; Secondary is negative if it was not asked.
	Primary   int                   `json:"primary"`
	Secondary int                   `json:"secondary"`
	Steps     map[string]stepResult `json:"steps"`
}

type stepResult struct {
	P50Ms float64 `json:"p50_ms"`
	P99Ms float64 `json:"p99_ms"`
}

// settle adds up what the connections did, and compares it with what the locations count: a message that came twice, was
// lost or is left over makes the run void.
func settle(ctx context.Context, o Options, depth int, workers []*worker) (r *queueResult, void []string) {
	r = &queueResult{Depth: depth, Secondary: -1, Steps: map[string]stepResult{}}
	var got []messageKey
	wrong := 0
	for _, w := range workers {
		m := w.messages
		wrong += m.wrong
		r.Puts, r.Deletes, r.Unsure = r.Puts+m.puts, r.Deletes+m.deletes, r.Unsure+m.unsure
		got = append(got, m.got...)
	}
	r.Gets = len(got)
	for _, step := range workers[0].messages.steps {
		sum := newRecorder()
		for _, w := range workers {
			sum.merge(w.messages.times[step])
		}
		r.Steps[step] = stepResult{ms(sum.percentile(0.5)), ms(sum.percentile(0.99))}
	}
	slices.SortFunc(got, func(a, b messageKey) int { return bytes.Compare(a[:], b[:]) })
	if n := len(got) - len(slices.Compact(got)); n > 0 {
		void = append(void, fmt.Sprintf("%d messages came twice", n))
	}
	if wrong > 0 {
		void = append(void, fmt.Sprintf("%d gets answered with a %s", wrong, wrongValue))
	}
	ctx, cancel := context.WithTimeout(ctx, o.arriveWait)
	defer cancel()
	want := depth + r.Puts - r.Deletes
	var err error
	if r.Primary, err = workers[0].waiting(ctx); err != nil || r.Primary < want-r.Unsure || r.Primary > want+r.Unsure {
		void = append(void, fmt.Sprintf("%d messages are in the queue, not %d (%d unsure): %v", r.Primary, want, r.Unsure, err))
	}
	if o.ReadBack > 0 && o.StopLocation == "" {
		if r.Secondary, err = arrived(ctx, o, workers[0], r.Primary); err != nil {
			void = append(void, err.Error())
		}
	}
	return r, void
}

// arrived waits until the other location counts as many messages.
func arrived(ctx context.Context, o Options, w *worker, want int) (n int, err error) {
	t, err := newTarget(o, true)
	if err != nil {
		return -1, err
	}
	there := newWorker(o, t, w.messages.run, 0, w.clock)
	defer there.close()
	for {
		if n, err = there.waiting(ctx); err == nil && n == want {
			return n, nil
		}
		if ctx.Err() != nil {
			return n, fmt.Errorf("%d messages are in the queue at -secondary, not %d: %w", n, want, errors.Join(err, ctx.Err()))
		}
		pause(ctx, retryPause)
	}
}

// print writes the result for people, line by line.
func (r *queueResult) print(line func(format string, args ...any), steps []string) {
	line("  messages  %d before, %d put, %d got, %d deleted, %d requests unsure; %d at the primary, %d at -secondary",
		r.Depth, r.Puts, r.Gets, r.Deletes, r.Unsure, r.Primary, r.Secondary)
	for _, step := range steps {
		line("  %-9s p50 %.2f ms, p99 %.2f ms", step, r.Steps[step].P50Ms, r.Steps[step].P99Ms)
	}
}
