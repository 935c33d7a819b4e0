package blobs

import (
	"context"
	"runtime/debug"
	"sync"

	"antipode/api/protocol"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// runBatch runs the parts, each by the handler of its operation. They wait for each other with what they write, which is
// submitted together, so that a range commits all of it at once. An error is one of the batch: the containers cannot be looked
// up, or every part was refused because the server is busy, and nothing happened. A client sends a batch again by itself, but
// no part.
func (c *call) runBatch(parts []*part) error {
	if err := c.findContainers(parts); err != nil {
		return err
	}
	var permitted []*part
	for _, p := range parts {
		if err := c.authorize(p); err != nil {
			c.refusePart(p, err)
			continue
		}
		permitted = append(permitted, p)
	}
	all := newTurns(len(permitted))
	var wg sync.WaitGroup
	for i, p := range permitted {
		wg.Go(func() {
			t := &turn{turns: all, i: i, writer: c.o.Writer}
			defer t.end()
			c.runPart(p, t)
		})
	}
	all.submit(c.ctx, c.o.Writer)
	wg.Wait()
	for _, p := range parts {
		if e, known := storageerr.Of(p.err); !known || e.Code != storageerr.ServerBusy.Code {
			return nil
		}
	}
	return parts[0].err
}

// runPart runs a part. A panic ends it alone.
func (c *call) runPart(p *part, t *turn) {
	defer func() {
		if r := recover(); r != nil {
			c.o.Logger.Error("part of a batch failed: a bug in the server", "operation", p.asked.Name, "panic", r,
				"stack", string(debug.Stack()), "request_id", p.r.ID)
			p.fail(storageerr.InternalError)
		}
	}()
	p.begin()
	run := &call{Handler: c.Handler, w: &p.answer, r: p.r, ctx: c.ctx, asked: p.asked, turn: t}
	if err := c.serve(run); err != nil {
		c.refusePart(p, err)
	}
}

// refusePart answers a part with an error. One that is not the protocol's is logged, as that of a request is.
func (c *call) refusePart(p *part, err error) {
	if _, ours := protocol.ErrorOf(err); !ours {
		c.o.Logger.Error("part of a batch failed", "operation", p.asked.Name, "error", err, "request_id", p.r.ID)
	}
	p.fail(err)
}

// restMax is how many parts of a batch do at once what is left to do behind their writes.
const restMax = 8

// turns gathers the first write of each part of a batch.
type turns struct {
	writes  []services.Write
	answers []chan error
	// gathered is done once each part has written, or ended without.
	gathered sync.WaitGroup
	rest     chan struct{}
}

func newTurns(parts int) *turns {
	t := &turns{writes: make([]services.Write, parts), answers: make([]chan error, parts), rest: make(chan struct{}, restMax)}
	t.gathered.Add(parts)
	for i := range t.answers {
		t.answers[i] = make(chan error, 1)
	}
	return t
}

// submit submits the writes in the order of the parts, once all are there.
func (t *turns) submit(ctx context.Context, to services.AllWriter) {
	defer func() {
		for _, answer := range t.answers {
			close(answer) // Of a part that has none.
		}
	}()
	t.gathered.Wait()
	var writes []services.Write
	var of []int
	for i, w := range t.writes {
		if w != nil {
			writes, of = append(writes, w), append(of, i)
		}
	}
	if len(writes) == 0 {
		return
	}
	for n, err := range to.WriteAll(ctx, writes) {
		t.answers[of[n]] <- err
	}
}

// turn is a part's place among the others. Its methods are called by one goroutine.
type turn struct {
	*turns
	i      int
	writer services.Writer
	// gone: the part has written, or ended. resting: it holds a place of rest.
	gone, resting bool
}

// write commits a write: the first of the part together with those of the others.
func (t *turn) write(ctx context.Context, w services.Write) error {
	if t.gone {
		return t.writer.Write(ctx, w)
	}
	t.writes[t.i] = w
	t.leave()
	err, answered := <-t.answers[t.i]
	if !answered {
		return kv.ErrUnknown
	}
	if err == nil {
		t.rest <- struct{}{}
		t.resting = true
	}
	return err
}

func (t *turn) leave() {
	t.gone = true
	t.gathered.Done()
}

// end ends the part.
func (t *turn) end() {
	if !t.gone {
		t.leave()
	}
	if t.resting {
		<-t.rest
	}
}
