package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/internal/plantedbugs"
)

// Bounds of what one end is asked.
const (
	// callTries is how often a question is asked while its answer is an error.
	callTries = 3
	// callPause is the pause after such an error.
	callPause = 200 * time.Millisecond
)

// errGone: a session has ended before its comparison did.
var errGone = errors.New("verify: the snapshot is gone: its node has stopped, or another one leads the range")

// end is a session at one of the two locations.
type end struct {
	peer    Peer
	rng     geo.RangeID
	wait    func(context.Context, time.Duration) error
	session uint64
	heads   [geo.LaneCount]LaneHead
	// scans counts the scans of the session.
	scans uint64
}

// open opens a session.
func (e *end) open(ctx context.Context, q Question) error {
	q.Op = OpOpen
	a, err := e.ask(ctx, &q)
	if err != nil {
		return err
	}
	e.session = a.Session
	return e.take(a.Heads)
}

// take takes the heads of an answer.
func (e *end) take(heads []LaneHead) error {
	for _, h := range heads {
		if h.Lane >= geo.LaneCount {
			return fmt.Errorf("%w: lane %d", errMalformed, h.Lane)
		}
		e.heads[h.Lane] = h
	}
	return nil
}

// ask asks a question, again where that fails.
func (e *end) ask(ctx context.Context, q *Question) (a *Answer, err error) {
	q.Session = e.session
	for try := 1; ; try++ {
		if a, err = e.peer.Ask(ctx, e.rng, q); err == nil {
			if a.Gone {
				return nil, errGone
			}
			return a, nil
		}
		if try == callTries || ctx.Err() != nil {
			return nil, err
		}
		if err := e.wait(ctx, callPause); err != nil {
			return nil, err
		}
	}
}

// name names the prefixes of the keys that are compared.
func (e *end) name(ctx context.Context, prefixes [][]byte) error {
	for from := 0; from < len(prefixes); {
		to, size := from, 0
		for to < len(prefixes) && (to == from || size+len(prefixes[to]) <= prefixesPerCall) {
			size += len(prefixes[to])
			to++
		}
		if _, err := e.ask(ctx, &Question{Op: OpName, From: from, Prefixes: prefixes[from:to]}); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// scanned is the result of a scan.
type scanned struct {
	result  []byte
	damages []Damage
	damaged uint64
	at      progress
}

// scan runs a scan to its end. report gets how far it is.
func (e *end) scan(ctx context.Context, s Scan, report func(progress)) (out scanned, err error) {
	e.scans++
	s.Number = e.scans
	q := Question{Op: OpScan, Scan: &s}
	for {
		a, err := e.ask(ctx, &q)
		if err != nil {
			return out, err
		}
		out.at = progress{a.Rows, a.Bytes, a.Chunks, a.ChunkBytes}
		report(out.at)
		switch {
		case !a.Done:
			continue
		case a.Failed != "":
			return out, errors.New(a.Failed)
		case q.Offset == 0:
			out.damages, out.damaged = a.Damages, a.Damaged
		}
		out.result = append(out.result, a.Result...)
		q.Offset = uint64(len(out.result))
		switch {
		case q.Offset >= a.Total:
			return out, nil
		case len(a.Result) == 0 || a.Total > resultMax:
			return out, fmt.Errorf("%w: %d bytes of %d", errMalformed, len(out.result), a.Total)
		}
	}
}

// close ends the session. If that fails the session ends when it was idle for a while.
func (e *end) close(ctx context.Context) {
	if e.session != 0 {
		_, _ = e.peer.Ask(ctx, e.rng, &Question{Op: OpClose, Session: e.session})
		e.session = 0
	}
}

// pair is a session at both locations.
type pair struct{ near, far *end }

// openPair opens a session at the secondary, then one at the primary: the heads of the second are not
// below the cursors of the first, unless the primary lost them.
func (r *run) openPair(ctx context.Context) (*pair, error) {
	of := func(p Peer) *end { return &end{peer: p, rng: r.o.Range, wait: r.o.Wait} }
	p := &pair{of(r.o.Near), of(r.o.Far)}
	q := Question{Account: r.o.Account, Epoch: r.o.Epoch}
	if err := p.far.open(ctx, q); err != nil {
		return nil, fmt.Errorf("the secondary: %w", err)
	}
	q.Source = true
	if err := p.near.open(ctx, q); err != nil {
		p.close()
		return nil, fmt.Errorf("the primary: %w", err)
	}
	return p, nil
}

// closeWait bounds how long the end of a session waits for its answer.
const closeWait = 5 * time.Second

// close ends both sessions, also after the context of the run has ended.
func (p *pair) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	p.near.close(ctx)
	p.far.close(ctx)
}

// each runs f at both ends at once.
func (p *pair) each(ctx context.Context, f func(ctx context.Context, e *end) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f(ctx, p.near) })
	g.Go(func() error { return f(ctx, p.far) })
	return g.Wait()
}

// scan runs a scan at both ends at once. The secondary alone examines payload: at the primary its own
// scrub does.
func (r *run) scan(ctx context.Context, p *pair, s Scan) (near, far scanned, err error) {
	err = p.each(ctx, func(ctx context.Context, e *end) (err error) {
		if e == p.near {
			rows := s
			rows.Payload = PayloadIgnored
			near, err = e.scan(ctx, rows, r.read)
			return err
		}
		far, err = e.scan(ctx, s, func(progress) {})
		return err
	})
	return near, far, err
}

// state is how the two ends of a lane relate.
type state int

const (
	moved state = iota
	ready
	stopped
)

// state compares head and cursor of a lane. why is the reason if it is not ready.
func (p *pair) state(l geo.Lane) (s state, why string) {
	head, at := p.near.heads[l], p.far.heads[l]
	switch {
	case at.stands():
		return stopped, "the stream is stopped at the secondary: " + at.Stopped
	case head.stands():
		return stopped, "the stream is stopped at the primary: " + head.Stopped
	case head.Head == at.Head || plantedbugs.Planted(plantedbugs.VerifyMoved):
		return ready, ""
	case head.Head.Seq == at.Head.Seq:
		return moved, fmt.Sprintf("record #%d is not the same in both locations", head.Head.Seq)
	case head.Head.Seq < at.Head.Seq:
		return moved, fmt.Sprintf("the secondary is at #%d, above the head #%d", at.Head.Seq, head.Head.Seq)
	default:
		return moved, fmt.Sprintf("moved: the secondary was at #%d, the head at #%d", at.Head.Seq, head.Head.Seq)
	}
}
