package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/tables"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

const (
	clientsOfAccount = 4
	clientsOfStory   = 2
	// thinkMax bounds the pause of a client between two operations. patience is how long it waits
	// for an answer; then the outcome is unknown.
	thinkMax = 60 * time.Millisecond
	patience = 400 * time.Millisecond
)

// outcome is what a client knows of its write.
type outcome int

const (
	open    outcome = iota // no answer yet, or one that leaves the outcome unknown
	acked                  // on every in-sync replica
	refused                // nothing happened
)

// op is one write of a client.
type op struct {
	id      int
	account *account
	l       *location
	rangeID geo.RangeID
	// write is the write that cmd evaluates, nil for the closing of a generation.
	write services.Write
	cmd   ranges.Command
	// numbered is what becomes of write, nil for one of the catalog. floor is the last write of its partition that was
	// acknowledged when it was submitted, moved how often the account had moved then.
	numbered *numbered
	floor    floor
	moved    int
	// payload is what it brings; after is the blob that it leaves, known once it took
	// effect, and twin all of that.
	payload payload
	after   *blobContent
	// copied is the content that a copy had at its source.
	copied *blobContent
	// offset is where in the blob an append that took effect begins.
	offset uint64
	twin   *blobTwin
	// m and life are the node it was given to; when it dies the answer is lost.
	m       *member
	life    int
	answers int
	outcome outcome
	// answer is the error of the last answer.
	answer error
	// index is where it took effect, zero while it did not; then is how often the account had
	// moved then.
	index uint64
	then  int
	// fenced means that the account had a copy, as the range's log has it, where it took effect: see checkConfirmed.
	fenced bool
	// lost means that it took effect and that the range was then recovered without it, or that its account's present
	// primary does not have it: see forks.go. at is its commit time.
	lost bool
	at   geo.Timestamp
	// reported means that its location has reported it as lost (R22).
	reported bool
	// partition is the key of what it changed, known once it took effect.
	partition string
}

// intake catches the command that primary makes of a write. The run submits it:
// primary.Write would wait.
type intake struct{ cmd ranges.Command }

var errTaken = errors.New("sim: command taken")

// Route implements primary.Stamp.
func (*intake) Route() *route.Table { return firstRanges }

// Submit implements primary.Stamp.
func (i *intake) Submit(_ context.Context, _ geo.RangeID, cmd ranges.Command) error {
	i.cmd = cmd
	return errTaken
}

// SubmitAll implements primary.Stamp. No write of a run is one of several.
func (*intake) SubmitAll(_ context.Context, _ geo.RangeID, cmds []ranges.Command) []error {
	return slices.Repeat([]error{errTaken}, len(cmds))
}

func (s *Sim) newOp(a *account, w services.Write) *op { return s.newOpAt(a, w, nil) }

// newOpAt makes an operation for a location, nil for where a client takes the account's primary to be.
func (s *Sim) newOpAt(a *account, w services.Write, at *location) *op {
	given := w
	var n *numbered
	if w.Partition().Service != geo.Catalog { // There the name holds the operation.
		n = &numbered{Write: w, id: len(s.ops)}
		given = n
	}
	if at == nil {
		at = s.drawHome(a)
	}
	_ = at.primary.Write(context.Background(), given) // errTaken: see intake.
	o := s.takeOp(a, at, geo.FirstRange(w.Partition().Service))
	o.write, o.numbered = w, n
	return o
}

// takeOp makes an operation at a location of the command that was caught last there.
func (s *Sim) takeOp(a *account, at *location, id geo.RangeID) *op {
	o := &op{id: len(s.ops), account: a, l: at, rangeID: id, cmd: at.intake.cmd}
	s.ops = append(s.ops, o)
	return o
}

// startWorkload starts the clients.
func (s *Sim) startWorkload() {
	for _, a := range s.accounts {
		n := clientsOfAccount
		if s.story != nil {
			n = clientsOfStory
		}
		for range n {
			s.client(a)
		}
	}
}

// client does one operation after the other until the faults end.
func (s *Sim) client(a *account) {
	s.after(s.between(0, thinkMax), func() {
		if !s.working() {
			return
		}
		next := func() { s.client(a) }
		svc := objectServices[s.rng.IntN(len(objectServices))]
		switch {
		case s.chance(s.churn(0.02)):
			s.submit(s.newContainer(a, svc), next)
		case s.chance(s.churn(0.01)) && s.story == nil:
			s.deleteContainer(a, svc, next)
		case s.chance(0.25):
			s.read(a, next)
		case svc == geo.Blob:
			s.writeBlob(a, next)
		case s.chance(0.25):
			s.submit(s.newOp(a, s.transaction(a)), next)
		default:
			s.submit(s.newOp(a, s.drawWrite(a)), next)
		}
	})
}

// churn is how likely a client creates or deletes a container.
func (s *Sim) churn(usual float64) float64 {
	if s.sweeps {
		return 0.05
	}
	return usual
}

// working reports whether clients still begin operations.
func (s *Sim) working() bool { return s.now < s.workEnd && s.err == nil }

// submit gives a write to a leader of its range; done is called once, when the
// client has its answer or lost patience.
func (s *Sim) submit(o *op, done func()) {
	leave := s.patiently(done)
	m := o.l.leader(o.rangeID)
	if m == nil || s.unknownThere(o) {
		s.notSubmitted(o)
		leave()
		return
	}
	s.submitTo(m, o, leave)
}

// submitTo submits a write at a node that takes itself for the leader of its range.
func (s *Sim) submitTo(m *member, o *op, done func()) {
	o.m = m
	o.life, o.moved = o.m.life, o.account.moved
	if o.numbered != nil {
		o.floor = s.newestAcked(o.write.Partition())
	}
	o.m.n.Range(o.rangeID).Submit(o.cmd, func(err error) {
		s.answered(o, err)
		done()
	})
	o.m.dirty = true
}

// patiently returns a function that calls done. done is called once: by it, or when patience is
// over.
func (s *Sim) patiently(done func()) (leave func()) {
	gone := false
	leave = func() {
		if !gone {
			gone = true
			done()
		}
	}
	s.after(patience, leave)
	return leave
}

// notSubmitted records that a write was refused on its way to the range.
func (s *Sim) notSubmitted(o *op) {
	o.answers++
	o.outcome = refused
	s.counts.Refused++
}

// answered takes the answer of a write.
func (s *Sim) answered(o *op, err error) {
	o.answers++
	o.answer = err
	if o.answers > 1 {
		s.fail(fmt.Errorf("%w: write %d", ErrAnswer, o.id))
	}
	lost := o.m.life != o.life || o.m.killed != nil
	switch {
	case lost || errors.Is(err, kv.ErrUnknown):
		s.counts.Unknown++
		s.event("%s write %d unknown", o.l.name, o.id)
	case err == nil:
		o.outcome = acked
		s.counts.Acked++
		s.countAcked(o.write)
		if o.rangeID != geo.FirstRange(geo.Catalog) && o.write != nil {
			o.account.fresh = o
		}
		s.event("%s write %d acked at %d", o.l.name, o.id, o.index)
		s.checkAck(o)
		s.checkAppended(o)
		s.checkConfirmed(o)
		s.checkFormer(o)
	default:
		o.outcome = refused
		s.counts.Refused++
		if o.m.full && errors.Is(err, kv.ErrBusy) {
			s.counts.ReadOnly++
		}
		if o.l != o.account.home {
			s.counts.FormerRefused++
		}
		s.event("%s write %d refused: %v", o.l.name, o.id, err)
		if o.index != 0 && (o.write != nil || !s.sweeps) { // A sweeper may have closed the generation.
			s.fail(fmt.Errorf("%w: write %d: %w", ErrGhost, o.id, err))
		}
		s.checkRefusal(o, err)
	}
}

// checkRefusal: the state on which a write was refused was committed, and held every write that
// was acknowledged before this one was submitted (R5).
func (s *Sim) checkRefusal(o *op, err error) {
	n := o.numbered
	if n == nil || n.refusal == nil || !errors.Is(err, n.refusal) {
		return // It was refused by the range, or since its container is gone.
	}
	if f := o.account.fork; f != nil && f.from == o.l && o.account.home != o.l {
		s.checkStray(o)
		return
	}
	s.counts.RefusalChecked++
	var seen place
	if n.saw >= 0 {
		if seen = s.ops[n.saw].place(); seen.index == 0 {
			s.fail(fmt.Errorf("%w: write %d: %w, on write %d", ErrUncommitted, o.id, err, n.saw))
		}
	}
	if o.floor.missed(seen) {
		s.fail(fmt.Errorf("%w: write %d: %w, on index %v, %v was acknowledged", ErrStaleRead, o.id, err, seen, o.floor.place))
	}
}

// countAcked counts the kinds of writes that are more than one row.
func (s *Sim) countAcked(w services.Write) {
	switch w := w.(type) {
	case *tables.Batch:
		s.counts.Transaction++
	case *blobs.PutBlob:
		switch {
		case w.Append:
			s.counts.AppendBlob++
		case len(w.Blob.Chunks) > 0:
			s.counts.BlobChunked++
		default:
			s.counts.BlobInline++
		}
	case *blobs.AppendBlock:
		s.counts.Appended++
	case *blobs.Seal:
		s.counts.Sealed++
	case *blobs.PutBlock:
		s.counts.Block++
	case *blobs.PutBlockList:
		s.counts.BlockList++
	case *blobs.StageCopy:
		s.counts.CopyStaged++
	case *blobs.CopyBlob:
		s.counts.Copied++
	case *blobs.DeleteBlob:
		s.counts.BlobDeleted++
	case *blobs.SnapshotBlob:
		s.counts.Snapshotted++
	case *blobs.DeleteSnapshot:
		s.counts.SnapshotDeleted++
	case *blobs.DropDead:
		s.counts.DeadDropped++
	}
}

// took records that the write named by a record took effect.
func (h *history) took(r *change.Record, index uint64) {
	p, _, err := keys.ParsePartition(r.Partition)
	if err != nil {
		h.s.fail(err)
		return
	}
	if keptAside(p.Account) {
		h.tookAside(p, r)
		return
	}
	if h.svc == geo.Catalog {
		if svc, id, ok := parseContainerName(p.Object); ok {
			h.tookContainer(svc, id, p, r, index)
		}
		return
	}
	h.checkOpen(p, r)
	for _, o := range r.Ops {
		if string(o.Row) != lastRowOf(h.svc) {
			continue
		}
		id, prev, err := parseLast(string(o.Value))
		if err != nil {
			h.s.fail(err)
			return
		}
		before, ok := h.newest[string(r.Partition)]
		if !ok {
			before = -1
		}
		if prev != before {
			h.fail(ErrStale, "write %d saw %d, the last was %d", id, prev, before)
		}
		h.newest[string(r.Partition)] = id
		h.tookOp(id, string(r.Partition), index, r.CommitTime)
		if !h.s.ops[id].lost {
			h.commits[string(r.Partition)] = append(h.commits[string(r.Partition)], commit{r.CommitTime, id})
		}
		if h.svc == geo.Blob {
			h.tookBlob(p, h.s.ops[id])
		}
	}
}

func (h *history) tookOp(id int, partition string, index uint64, at geo.Timestamp) {
	o := h.s.ops[id]
	if o.index != 0 {
		h.fail(ErrTwice, "write %d at index %d and %d", id, o.index, index)
	}
	if o.outcome == refused {
		h.fail(ErrGhost, "write %d at index %d", id, index)
	}
	o.index, o.then, o.partition, o.at = index, o.account.moved, partition, at
	o.fenced = h.m.gates[o.account.name].Fenced()
	if h.stray(o) {
		o.lost = true
		return
	}
	h.checkHome(o)
}
