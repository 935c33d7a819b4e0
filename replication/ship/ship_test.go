package ship

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// TestShip runs testdata: the range of the tables of the stamp north is shipped, step by
// step, over a bus and a payload way that answer when the scenario lets them.
func TestShip(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := stamptest.New(t, "north", geo.Table)
		r := &rig{t: t, stamp: s}
		r.start()
		datadriven.RunTest(t, path, r.run)
	})
}

type rig struct {
	t     *testing.T
	stamp *stamp.Stamp
	ship  *Shipper
	now   time.Duration
	// full makes the bus refuse. flying are the publishes and pushes not yet answered.
	full   bool
	out    strings.Builder
	flying []func(error)
	pushes []func(error)
	mu     sync.Mutex
	raised []string // alarms
}

// start begins with a new shipper, as a new process does.
func (r *rig) start() {
	r.flying, r.pushes = nil, nil
	r.ship = New(Options{
		Location: "north", Range: r.leader(), Publisher: r, Pusher: pusher{r}, Clock: clock.NewManual(time.Unix(0, 0)),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Alarm: func(reason string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.raised = append(r.raised, reason)
		},
	})
}

func (r *rig) leader() *ranges.Range { return leaderOf(r.t, r.stamp) }

// leaderOf waits until the table range of a stamp has a leader.
func leaderOf(t *testing.T, s *stamp.Stamp) *ranges.Range {
	var leader *ranges.Range
	require.Eventually(t, func() bool {
		leader = s.Leader(geo.FirstRange(geo.Table))
		return leader != nil
	}, time.Minute, time.Millisecond)
	return leader
}

// Publish implements bus.Publisher.
func (r *rig) Publish(subject string, data []byte, done func(error)) error {
	if r.full {
		r.out.WriteString("bus full\n")
		return bus.ErrFull
	}
	f, err := change.ParseFrame(data)
	require.NoError(r.t, err)
	require.Equal(r.t, "geo.north.table.4", subject)
	var words []string
	for _, b := range f.Records {
		rec, err := change.ParseRecord(b)
		require.NoError(r.t, err)
		words = append(words, fmt.Sprintf("%s#%d", objectOf(r.t, &rec), rec.Seq))
	}
	fmt.Fprintf(&r.out, "frame [%s]", strings.Join(words, " "))
	if c := f.Closed; c != nil {
		words = nil
		for _, h := range c.Heads {
			words = append(words, fmt.Sprintf("%s#%d", objects()[h.Lane], h.Seq))
		}
		slices.Sort(words)
		fmt.Fprintf(&r.out, " closed full=%t heads [%s]", c.Full, strings.Join(words, " "))
	}
	r.out.WriteString("\n")
	r.flying = append(r.flying, done)
	return nil
}

// MaxPayload implements bus.Publisher.
func (r *rig) MaxPayload() int { return 8 << 20 }

// Close implements bus.Publisher.
func (r *rig) Close() error { return nil }

type pusher struct{ r *rig }

func (p pusher) Push(refs []extent.Ref, done func(error)) {
	fmt.Fprintf(&p.r.out, "push %d chunks\n", len(refs))
	p.r.pushes = append(p.r.pushes, done)
}

func partition(object string) keys.Partition {
	return keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: object}
}

// objects are the partitions of the scenarios by lane.
func objects() map[geo.Lane]string {
	out := map[geo.Lane]string{}
	for _, o := range []string{"p", "q"} {
		out[partition(o).Lane()] = o
	}
	return out
}

func objectOf(t *testing.T, rec *change.Record) string {
	p, _, err := keys.ParsePartition(rec.Partition)
	require.NoError(t, err)
	return p.Object
}

func (r *rig) run(t *testing.T, d *datadriven.TestData) string {
	r.out.Reset()
	table := geo.FirstRange(geo.Table)
	switch d.Cmd {
	case "gate":
		g := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: d.HasArg("numbered")}
		stamptest.Submit(t, r.stamp, table, stamptest.Gate{Account: "acct", Gate: g})
	case "write": // Each argument is the name of a partition.
		for _, arg := range d.CmdArgs {
			if arg.Key == "chunk" || arg.Key == "bytes" {
				continue
			}
			var size int
			d.MaybeScanArgs(t, "bytes", &size)
			rec := change.Record{Ops: []change.Op{{Row: []byte("r"), Value: make([]byte, size)}}}
			if d.HasArg("chunk") {
				ref := extent.NewRef(extent.ChunkID{1}, []byte("payload"))
				require.NoError(t, r.stamp.PutChunk(t.Context(), ref, []byte("payload")))
				rec.Chunks = []extent.Ref{ref}
			}
			stamptest.Submit(t, r.stamp, table, stamptest.Change{Partition: partition(arg.Key), Record: rec})
		}
	case "close":
		stamptest.Submit(t, r.stamp, table, stamptest.Closed{})
	case "step":
		ms := 0
		d.MaybeScanArgs(t, "ms", &ms)
		r.now += time.Duration(ms) * time.Millisecond
		r.ship.Step(r.now)
	case "published":
		r.answer(&r.flying, d.HasArg("fail"))
	case "pushed":
		r.answer(&r.pushes, d.HasArg("fail"))
	case "bus":
		r.full = d.HasArg("full")
	case "restart":
		r.start()
	case "acknowledge":
		r.acknowledge(d)
	case "resume": // An operator lets a stream go on.
		stamptest.Submit(t, r.stamp, table, resume{testStream(d.CmdArgs[0].Key)})
	case "outbox":
		return r.outbox()
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return r.out.String()
}

func (r *rig) answer(waiting *[]func(error), fail bool) {
	var err error
	if fail {
		err = errors.New("lost")
	}
	for _, done := range *waiting {
		done(err)
	}
	*waiting = nil
}

// testStream is the stream of a partition.
func testStream(object string) geo.Stream {
	return geo.Stream{
		Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: geo.FirstRange(geo.Table), Lane: partition(object).Lane(),
	}
}

// acknowledge reports the cursor of a partition's stream, or a full set of cursors that lacks it, and
// prints the answer. If the answer has to lead to a stop, it waits for that and prints it too.
func (r *rig) acknowledge(d *datadriven.TestData) {
	st := testStream(d.CmdArgs[0].Key)
	var seq, below uint64
	d.MaybeScanArgs(r.t, "seq", &seq)
	d.MaybeScanArgs(r.t, "below", &below)
	a := Acknowledgement{Full: d.HasArg("absent")}
	if !a.Full {
		c := StreamCursor{Stream: st, Head: geo.Head{Seq: geo.Seq(seq), Hash: 1}, Below: geo.Seq(below)}
		if own, ok, err := r.leader().Machine.OutboxAt(st, c.Head.Seq); ok {
			require.NoError(r.t, err)
			c.Head = own.Head
		}
		if d.HasArg("other-hash") {
			c.Head.Hash++
		}
		a.Cursors = []StreamCursor{c}
	}
	before := len(r.alarms())
	first, err := r.ship.Acknowledge(a)
	require.NoError(r.t, err)
	r.printMismatches(first)
	for _, m := range first {
		if m.Stopped || m.Reason == change.StopLost && geo.Seq(below) != m.Here.Seq {
			continue
		}
		require.Eventually(r.t, func() bool { return len(r.alarms()) > before }, time.Minute, time.Millisecond)
		again, err := r.ship.Acknowledge(a)
		require.NoError(r.t, err)
		fmt.Fprintf(&r.out, "alarm %s\n", r.alarms()[before:])
		r.printMismatches(again)
	}
}

func (r *rig) printMismatches(list []Mismatch) {
	for _, m := range list {
		fmt.Fprintf(&r.out, "%s %s, here #%d, stopped %t\n", objects()[m.Stream.Lane], m.Reason, m.Here.Seq, m.Stopped)
	}
}

// alarms returns what alarms were raised so far.
func (r *rig) alarms() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.raised)
}

// outbox waits for a trim under way, and reports what is left.
func (r *rig) outbox() string {
	require.Eventually(r.t, func() bool {
		r.ship.mu.Lock()
		defer r.ship.mu.Unlock()
		return !r.ship.trimming
	}, time.Minute, time.Millisecond)
	b, err := r.leader().Machine.Backlog()
	require.NoError(r.t, err)
	return fmt.Sprintf("%d records", b.Records)
}

// resume is a command that ends the stop of a stream.
type resume struct{ s geo.Stream }

func (c resume) Evaluate(tx *ranges.Tx) error {
	tx.Stop(c.s, change.Stop{})
	return nil
}
