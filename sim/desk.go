package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"antipode/directory"
	"antipode/geo"
	"antipode/primary"
	replicationlink "antipode/replication/link"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// desk is what a node's process does for the directory: it goes on with operations of accounts while it leads the
// catalog, takes the calls of operators, and answers those of the other location. All of it is in tasks, which end
// with the node, wherever they are.
type desk struct {
	m         *member
	directory *directory.Directory
	// handlers answer calls of the other location, by method.
	handlers map[string]func(ctx context.Context, body []byte) ([]byte, error)
}

const (
	// resumeEvery is how often a node looks for operations that it can go on with.
	resumeEvery = 100 * time.Millisecond
	// submitMax is how long a command waits for its answer, peerMax a call for that of the other location.
	submitMax = time.Second
	peerMax   = 1500 * time.Millisecond
	// leaderPause lies between two attempts to find the leader of a range, leaderTries is how many there are.
	leaderPause = 20 * time.Millisecond
	leaderTries = 20
)

// openDesk begins what the node does for the directory, in a run with changes of redundancy.
func (m *member) openDesk() {
	s := m.l.s
	if s.moves == nil {
		return
	}
	d := &desk{m: m, handlers: map[string]func(context.Context, []byte) ([]byte, error){}}
	m.desk = d
	d.directory = directory.NewDirectory(d, m.l.far.name)
	d.directory.SetTime(d.wait, d.within)
	d.directory.SetPace(m.clock, m.l.s.copyRate())
	if s.promotions != nil {
		d.directory.Promoter().SetTimes(s.promotionTimes)
	}
	if s.third != nil {
		d.directory.Promoter().SetClaims(thirdClaims{m.witness()})
	}
	images := primary.New(d)
	images.Images = s.imageBounds()
	d.directory.SetImages(images)
	d.directory.SetPeer(directory.NewRemotePeer(d))
	d.directory.Mover().SetReceived(d.received)
	directory.ServePeer(d, replicationlink.New(), d.directory, func(id geo.RangeID) error {
		if !m.leads(id) {
			return errLink
		}
		return nil
	})
	m.begin(d.resume)
}

// resume goes on with the operations of accounts as long as the node lives: see location.Location.resumeOperations.
func (d *desk) resume() {
	t := d.m.l.s.task
	for pause := resumeEvery; t.rest(pause) == nil; {
		pause = resumeEvery
		if !d.m.leads(geo.FirstRange(geo.Catalog)) {
			continue
		}
		again, err := d.directory.Resume(context.Background())
		if again > 0 {
			pause = min(pause, again)
		}
		if err != nil && !t.gone {
			d.m.l.s.event("%s node %d: operations wait: %v", d.m.l.name, d.m.id, err)
		}
	}
}

// Location implements directory.Stamp.
func (d *desk) Location() geo.Location { return d.m.l.name }

// Route implements directory.Stamp.
func (*desk) Route() *route.Table { return firstRanges }

// Submit implements directory.Stamp: see stamp.Stamp.Submit.
func (d *desk) Submit(ctx context.Context, id geo.RangeID, cmd ranges.Command) error {
	t := d.m.l.s.task
	for range leaderTries {
		if ctx.Err() != nil {
			break
		}
		submit := nodeStamp{d.m}.Submit
		if d.m.leads(id) {
			submit = d.submitHere
		}
		if err := submit(ctx, id, cmd); !errors.Is(err, ranges.ErrNotLeader) && !errors.Is(err, kv.ErrBusy) {
			return err
		}
		if t.rest(leaderPause) != nil {
			break
		}
	}
	return kv.ErrBusy
}

// submitHere gives a command to this node and waits for its answer. One that dies first gives none.
func (d *desk) submitHere(_ context.Context, id geo.RangeID, cmd ranges.Command) error {
	m, life := d.m, d.m.life
	return m.l.s.task.await(submitMax, func(done func(error)) {
		m.n.Range(id).Submit(cmd, func(err error) {
			if m.life != life || m.killed != nil {
				err = kv.ErrUnknown
			}
			done(err)
		})
		m.dirty = true
	})
}

// SubmitAll is Submit for many commands: see stamp.Stamp.SubmitAll. A node that does not lead sends them one by one.
func (d *desk) SubmitAll(ctx context.Context, id geo.RangeID, cmds []ranges.Command) []error {
	errs := slices.Repeat([]error{kv.ErrUnknown}, len(cmds))
	if !d.m.leads(id) {
		for i, cmd := range cmds {
			errs[i] = d.Submit(ctx, id, cmd)
		}
		return errs
	}
	m, life, left := d.m, d.m.life, len(cmds)
	_ = m.l.s.task.await(submitMax, func(done func(error)) {
		m.n.Range(id).SubmitAll(cmds, func(i int, err error) {
			switch {
			case m.life != life || m.killed != nil:
			case errors.Is(err, ranges.ErrNotLeader):
				errs[i] = kv.ErrBusy
			default:
				errs[i] = err
			}
			if left--; left == 0 {
				done(nil)
			}
		})
		m.dirty = true
	})
	return slices.Clone(errs) // An answer that is late changes nothing any more.
}

// Read implements directory.Stamp: of a range that the node leads, once its lease holds.
func (d *desk) Read(ctx context.Context, id geo.RangeID, f func(ranges.State) error) error {
	t := d.m.l.s.task
	now, cancel := context.WithCancel(ctx)
	cancel() // It must not wait for a lease.
	for range leaderTries {
		if d.m.leads(id) {
			var found error
			r := d.m.n.Range(id)
			err := r.Read(now, func(state ranges.State) error {
				found = f(state)
				return found
			})
			if err == nil || found != nil && errors.Is(err, found) {
				return err
			}
			err = t.await(submitMax, func(done func(error)) {
				r.Confirm(done)
				d.m.dirty = true
			})
			if errors.Is(err, kv.ErrUnknown) || errors.Is(err, errGone) {
				break
			}
			continue
		}
		if ctx.Err() != nil || t.rest(leaderPause) != nil {
			break
		}
	}
	return kv.ErrBusy
}

// wait is clock.Wait.
func (d *desk) wait(ctx context.Context, pause time.Duration) error {
	if err := d.m.l.s.task.rest(max(pause, time.Millisecond)); err != nil {
		return err
	}
	return ctx.Err()
}

// within is context.WithTimeout.
func (d *desk) within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	d.m.l.s.after(most, cancel)
	return ctx, cancel
}

// Handle implements replicationlink.Handlers.
func (d *desk) Handle(method string, f func(ctx context.Context, body []byte) ([]byte, error)) {
	d.handlers[method] = f
}

// Call implements replicationlink.Caller: a call over the link, which may be lost, come late and come twice.
func (d *desk) Call(_ context.Context, method string, body []byte) (out []byte, err error) {
	s := d.m.l.s
	err = s.task.await(peerMax, func(done func(error)) {
		s.carry(d.m.l.far, method, body, func(b []byte, answer error) {
			out = b
			done(answer)
		})
	})
	return out, err
}

// received asks the other location up to what time it has committed a range here.
func (d *desk) received(_ context.Context, id geo.RangeID) (geo.Timestamp, error) {
	l := d.m.l
	if err := l.s.callsFail(); err != nil {
		return 0, err
	}
	if !slices.Contains(l.s.shipped, id) {
		return ^geo.Timestamp(0), nil // A run leaves out the streams of ranges that it does not write.
	}
	r := l.far.Leader(id)
	if r == nil {
		return 0, errLink
	}
	return r.Machine.Received(geo.SourceRange{Origin: l.name, Range: id}), nil
}

// carry brings a call to a location, and its answer back.
func (s *Sim) carry(far *location, method string, body []byte, done func([]byte, error)) {
	s.deliver(far, method, body, s.linkDelay(), done)
	if s.faulty && s.moves.Float64() < callDoubled {
		s.counts.CallDoubled++
		s.deliver(far, method, body, s.linkDelay()+time.Duration(s.moves.Int64N(int64(callLateMax))), func([]byte, error) {})
	}
}

// How likely a call is lost, or its answer, and comes a second time; and how late that may be.
const (
	callLost        = 0.08
	callLostInDoubt = 0.5
	callDoubled     = 0.15
	callLateMax     = 1500 * time.Millisecond
)

// callLost is how likely a call is lost, and again its answer.
func (s *Sim) callLost() float64 {
	if s.doubts {
		return callLostInDoubt
	}
	return callLost
}

func (s *Sim) deliver(far *location, method string, body []byte, after time.Duration, done func([]byte, error)) {
	lost := func() error {
		if s.faulty && s.moves.Float64() < s.callLost() {
			s.counts.CallLost++
			return errLink
		}
		return s.callsFail()
	}
	s.after(after, func() {
		m := far.newest(geo.FirstRange(geo.Catalog))
		if s.losesCall != nil && s.losesCall(method, false) {
			m = nil
		}
		if err := lost(); err != nil || m == nil || m.stands() {
			done(nil, errors.Join(errLink, err))
			return
		}
		m.begin(func() {
			out, err := m.desk.handlers[method](context.Background(), body)
			s.after(s.linkDelay(), func() {
				if lost := lost(); lost != nil {
					out, err = nil, lost
				} else if s.losesCall != nil && s.losesCall(method, true) {
					out, err = nil, errLink
				}
				done(out, err)
			})
		})
	})
}
