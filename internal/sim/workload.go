package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// accountPlan are the accounts, two of them with one primary: each location is
// primary for some and secondary for others.
var accountPlan = [...]struct { //nolint:gochecknoglobals // A table.
	name geo.Account
	home int
}{{"alpha", 0}, {"bravo", 0}, {"charlie", 1}}

const (
	tablesAtBoot     = 1
	partitionsOf     = 5 // partitions of one table
	clientsOfAccount = 3
	// thinkMax bounds the pause of a client between two operations; patience is
	// after how long it gives an operation up, its outcome unknown.
	thinkMax = 60 * time.Millisecond
	patience = 400 * time.Millisecond
)

// account is an account and its tables so far.
type account struct {
	name   geo.Account
	home   *location
	tables []*table
	// lastSync is the greatest Last Sync Time that the other location showed.
	lastSync geo.Timestamp
	// asking says that a question for it is open, asked since when.
	asking bool
	asked  time.Duration
}

func (s *Sim) account(name geo.Account) *account {
	for _, a := range s.accounts {
		if a.name == name {
			return a
		}
	}
	return nil
}

// outcome is what a client knows of its write.
type outcome int

const (
	open    outcome = iota // no answer yet, or none that says what happened
	acked                  // on every in-sync replica
	refused                // nothing happened
)

// op is one write of a client.
type op struct {
	id      int
	account *account
	l       *location
	rangeID geo.RangeID
	cmd     ranges.Command
	// m and life are the node it was given to; when it dies the answer is lost.
	m       *member
	life    int
	answers int
	outcome outcome
	// index is where it took effect, zero while it did not.
	index uint64
	// partition is the key of what it changed, known once it took effect.
	partition string
}

// intake catches the command that primary makes of a write. The run submits it:
// primary.Write would wait.
type intake struct{ cmd ranges.Command }

var errTaken = errors.New("sim: command taken")

// Submit implements primary.Stamp.
func (i *intake) Submit(_ context.Context, _ geo.RangeID, cmd ranges.Command) error {
	i.cmd = cmd
	return errTaken
}

func (s *Sim) newOp(a *account, w services.Write) *op {
	_ = a.home.primary.Write(context.Background(), w) // errTaken: see intake.
	return s.takeOp(a, geo.FirstRange(w.Partition().Service))
}

// takeOp makes an operation of the command that was caught last.
func (s *Sim) takeOp(a *account, id geo.RangeID) *op {
	o := &op{id: len(s.ops), account: a, l: a.home, rangeID: id, cmd: a.home.intake.cmd}
	s.ops = append(s.ops, o)
	return o
}

// write is a change of two rows of one partition: lastRow always says which write
// was the last and which one before it; the other row is set, deleted, or must not
// be there.
type write struct {
	id        int
	partition keys.Partition
	row       string
	kind      int
	pad       string
}

const lastRow = "last"

const (
	setRow = iota
	deleteRow
	insertRow
	writeKinds
)

// Partition implements services.Write.
func (w *write) Partition() keys.Partition { return w.partition }

// Gone implements services.Write.
func (w *write) Gone() error { return storageerr.TableNotFound }

// Evaluate implements services.Write.
func (w *write) Evaluate(get kv.Getter, _ geo.Timestamp) (services.Effect, error) {
	prefix := w.partition.Append(nil)
	before, ok, err := get.Get(append(prefix[:len(prefix):len(prefix)], lastRow...))
	if err != nil {
		return services.Effect{}, err
	}
	prev := -1
	if ok {
		if prev, _, err = parseLast(string(before)); err != nil {
			return services.Effect{}, err
		}
	}
	other := change.Op{Row: []byte(w.row), Value: []byte(strconv.Itoa(w.id) + " " + w.pad)}
	_, exists, err := get.Get(append(prefix[:len(prefix):len(prefix)], w.row...))
	switch {
	case err != nil:
		return services.Effect{}, err
	case w.kind == insertRow && exists:
		return services.Effect{}, storageerr.EntityAlreadyExists
	case w.kind == deleteRow:
		other = change.Op{Row: []byte(w.row), Delete: true}
	}
	last := change.Op{Row: []byte(lastRow), Value: []byte(fmt.Sprintf("%d %d", w.id, prev))}
	return services.Effect{Ops: []change.Op{other, last}}, nil
}

// parseLast reads the value of lastRow: a write and the one before it.
func parseLast(v string) (id, prev int, err error) {
	_, err = fmt.Sscanf(v, "%d %d", &id, &prev)
	return id, prev, err
}

// startWorkload starts the clients.
func (s *Sim) startWorkload() {
	for _, a := range s.accounts {
		for range clientsOfAccount {
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
		switch {
		case s.chance(0.02):
			s.submit(s.newTable(a), next)
		case s.chance(0.01):
			s.deleteTable(a, next)
		case s.chance(0.25):
			s.read(a, next)
		default:
			s.submit(s.newOp(a, s.drawWrite(a)), next)
		}
	})
}

// working says that clients still begin operations.
func (s *Sim) working() bool { return s.now < s.workEnd && s.err == nil }

func (s *Sim) drawPartition(a *account) keys.Partition {
	// The newest table is in the hurry that makes a record come before its table; a
	// deleted one is written to by clients that have not heard.
	t := a.tables[len(a.tables)-1]
	if s.chance(0.5) {
		t = a.tables[s.rng.IntN(len(a.tables))]
	}
	return keys.Partition{
		Service: geo.Table, Account: a.name, Container: t.name, Generation: t.generation,
		Object: "p" + strconv.Itoa(s.rng.IntN(partitionsOf)),
	}
}

func (s *Sim) drawWrite(a *account) *write {
	return &write{
		id: len(s.ops), partition: s.drawPartition(a), row: "row" + strconv.Itoa(s.rng.IntN(3)),
		kind: s.rng.IntN(writeKinds), pad: strings.Repeat("x", s.rng.IntN(100)),
	}
}

// submit gives a write to a leader of its range; done is called once, when the
// client has its answer or lost patience.
func (s *Sim) submit(o *op, done func()) {
	gone := false
	leave := func() {
		if !gone {
			gone = true
			done()
		}
	}
	s.after(patience, leave)
	o.m = o.l.leader(o.rangeID)
	if o.m == nil {
		o.answers++
		o.outcome = refused // Never submitted.
		s.counts.Refused++
		leave()
		return
	}
	o.life = o.m.life
	o.m.n.Range(o.rangeID).Submit(o.cmd, func(err error) {
		s.answered(o, err)
		leave()
	})
	o.m.dirty = true
}

// answered takes the answer of a write.
func (s *Sim) answered(o *op, err error) {
	o.answers++
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
		s.event("%s write %d acked at %d", o.l.name, o.id, o.index)
		s.checkAck(o)
	default:
		o.outcome = refused
		s.counts.Refused++
		s.event("%s write %d refused: %v", o.l.name, o.id, err)
		if o.index != 0 {
			s.fail(fmt.Errorf("%w: write %d: %w", ErrGhost, o.id, err))
		}
	}
}

// took notes that the write named by a record took effect.
func (h *history) took(r *change.Record, index uint64) {
	p, _, err := keys.ParsePartition(r.Partition)
	if err != nil {
		h.s.fail(err)
		return
	}
	if h.svc == geo.Catalog {
		if strings.HasPrefix(p.Object, "table/t") {
			h.tookTable(p, r, index)
		}
		return
	}
	for _, o := range r.Ops {
		if string(o.Row) != lastRow {
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
		h.tookOp(id, string(r.Partition), index)
	}
}

func (h *history) tookOp(id int, partition string, index uint64) {
	o := h.s.ops[id]
	if o.index != 0 {
		h.fail(ErrTwice, "write %d at index %d and %d", id, o.index, index)
	}
	if o.outcome == refused {
		h.fail(ErrGhost, "write %d at index %d", id, index)
	}
	o.index, o.partition = index, partition
}
