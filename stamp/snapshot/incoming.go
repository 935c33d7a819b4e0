package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/durable"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/room"
	"antipode/stamp/state"
)

// incomingMax bounds the range snapshots that a node receives at once.
const incomingMax = 2

// Refusals of a range snapshot. Nothing changed here; the leader may try again.
var (
	ErrBusy     = errors.New("node takes no range snapshot now")
	ErrUnneeded = errors.New("range snapshot not needed any more")
)

// Incoming is a range snapshot on its way into this node. Fragments are written to staged
// tables as they come, so that memory holds one of them. The state changes only at
// Finish. Its methods are called from one goroutine; Close ends it in any case.
type Incoming struct {
	m    *Manager
	id   geo.RangeID
	of   identity
	from geo.NodeID
	msg  *pb.Message
	dir  string

	staging *state.Staging
	// next is the number of the next fragment. whole: the last one is here.
	next  uint32
	whole bool
	// chunks is the file that lists the payload chunks that the rows name: they may be millions. Those that are here
	// are among them, since until the snapshot is gone on with they may be collected. named is its length.
	chunks  vfs.File
	chunksW *bufio.Writer
	named   uint64
	// after is the key up to which an earlier stream brought the rows, recorded how many tables the file kept names.
	// unfit: what came is of no use. See kept.go.
	after    []byte
	recorded uint32
	unfit    bool

	// staged: the scheduler gets, or has, the staged files; owned: it has. closed: Close was called. replaced: the attempt to
	// replace the state has ended, with failure. Guarded by Manager.mu.
	staged, owned, closed, replaced bool
	failure                         error
	// accepted: Raft took the snapshot. installed: it is in place. Both scheduler only.
	accepted, installed bool
	// done receives the result of a staged snapshot, once.
	done chan error
}

// Accept begins to receive a range snapshot. It may be called from any goroutine.
func (m *Manager) Accept(from geo.NodeID, h Header) (*Incoming, error) {
	r := m.o.Node.Range(h.Range)
	if r == nil || m.o.RowChunks == nil {
		return nil, ErrBusy
	}
	if err := m.o.Node.Accepts(from, h); err != nil {
		return nil, err
	}
	if r.Machine.AppliedState().Index >= h.Message.GetSnapshot().GetMetadata().GetIndex() {
		return nil, ErrUnneeded
	}
	in := &Incoming{
		m: m, id: h.Range, of: identityOf(h), from: from, msg: h.Message, dir: m.StagedDir(h.Range), done: make(chan error, 1),
	}
	m.mu.Lock()
	if _, taken := m.incoming[h.Range]; taken || m.closed || m.ctx.Err() != nil || len(m.incoming) >= incomingMax {
		m.mu.Unlock()
		return nil, ErrBusy
	}
	m.incoming[h.Range] = in
	delete(m.kept, h.Range)
	m.background.Add(1)
	m.mu.Unlock()
	if err := in.open(); err != nil {
		in.unfit = true
		in.Close()
		return nil, fmt.Errorf("stage range snapshot: %w", err)
	}
	return in, nil
}

func (in *Incoming) open() (err error) {
	fs := in.m.o.FS
	if ok, err := in.resume(); ok || err != nil {
		return err
	}
	if err := fs.RemoveAll(in.dir); err != nil {
		return err
	}
	if err := durable.MkdirAll(fs, in.dir); err != nil {
		return err
	}
	if in.staging, err = in.m.o.State.NewStaging(in.dir, ranges.Spans(in.id)); err != nil {
		return err
	}
	if in.chunks, err = fs.Create(in.chunksPath(), vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	in.chunksW = bufio.NewWriter(in.chunks)
	return nil
}

func (in *Incoming) chunksPath() string { return in.m.o.FS.PathJoin(in.dir, "chunks") }

// Send takes the next fragment and returns when it is written; the return acknowledges the
// fragment. After an error the snapshot is of no use: Close it.
func (in *Incoming) Send(_ context.Context, f Fragment) error {
	if err := in.m.ctx.Err(); err != nil {
		return err
	}
	err := in.take(f)
	in.unfit = in.unfit || err != nil
	return err
}

func (in *Incoming) take(f Fragment) error {
	if in.m.o.Room.Level() >= room.Bare {
		return ErrBusy // What is staged is removed, and makes room again.
	}
	if in.whole {
		return fmt.Errorf("%w: number %d follows the last", ErrFragment, f.Number)
	}
	if err := f.check(in.next); err != nil {
		return err
	}
	in.next++
	in.whole = f.Last
	r := in.m.o.Node.Range(in.id)
	err := eachRow(f.Rows, func(key, value []byte) error {
		if err := r.CheckSnapshot(in.from, key, value); err != nil {
			return err // Installed, it would keep the node from opening: see feature.ErrLater.
		}
		if err := in.name(key, value); err != nil {
			return err
		}
		return in.staging.Add(key, value)
	})
	if err != nil {
		return err
	}
	return in.record()
}

// name records the chunks that a row names.
func (in *Incoming) name(key, value []byte) error {
	refs, err := in.m.o.RowChunks(in.id, key, value)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if err := writeRef(in.chunksW, ref); err != nil {
			return err
		}
		in.named += refLen
	}
	return nil
}

// Finish fetches the payload that the snapshot names, then replaces the replica's state by the
// snapshot, and returns when that is durable. ErrUnneeded: the log has caught up by itself.
// progressed is called now and then while it fetches.
func (in *Incoming) Finish(ctx context.Context, progressed func()) error {
	if err := in.Stage(ctx, progressed); err != nil {
		return err
	}
	select {
	case err := <-in.done: // It comes in the next pass, even if the sender's context ends.
		return err
	case <-in.m.ctx.Done():
		return in.m.ctx.Err()
	}
}

// Stage is the first part of Finish: it fetches the payload and passes the snapshot to the
// scheduler. Installed returns what becomes of it.
func (in *Incoming) Stage(ctx context.Context, progressed func()) error {
	if !in.whole {
		return fmt.Errorf("%w: ended before the last", ErrFragment)
	}
	if err := errors.Join(in.staging.Finish(), in.chunksW.Flush(), in.record()); err != nil {
		in.unfit = true
		return err
	}
	ctx, cancel := joinContext(ctx, in.m.ctx)
	defer cancel()
	if err := in.fetchPayload(ctx, progressed); err != nil {
		return err
	}
	// The ingest waits for a flush of the range's rows in the memtable. It is better to wait
	// here than on the scheduler.
	flushed, err := in.m.o.State.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-flushed:
	case <-ctx.Done():
		return ctx.Err()
	}
	in.m.mu.Lock()
	in.staged = true
	in.m.arrived = append(in.m.arrived, in)
	in.m.mu.Unlock()
	in.m.o.Node.Wake()
	return nil
}

// Installed receives the result of a staged snapshot, once; nothing if the node ends before
// there is one.
func (in *Incoming) Installed() <-chan error { return in.done }

// joinContext returns a context that ends with either.
func joinContext(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// fetchPayload makes every chunk that the staged rows name durable here (R3).
func (in *Incoming) fetchPayload(ctx context.Context, progressed func()) error {
	f, err := in.m.o.FS.Open(in.chunksPath())
	if err != nil {
		return err
	}
	err = eachRef(bufio.NewReader(f), func(ref extent.Ref) error {
		if err := in.m.o.Node.Fetch(ctx, ref, in.from); err != nil {
			return err
		}
		progressed()
		return nil
	})
	if err == nil {
		err = in.m.o.Chunks.Sync(ctx)
	}
	return errors.Join(err, f.Close())
}

// Close ends the transfer. What was staged is removed, unless the scheduler owns it, or it is kept for a
// stream that goes on. It may be called again.
func (in *Incoming) Close() {
	m := in.m
	m.mu.Lock()
	if m.incoming[in.id] != in || in.closed {
		m.mu.Unlock()
		return
	}
	in.closed = true
	staged := in.staged
	for i, a := range m.arrived {
		if a == in { // The scheduler has not seen it.
			m.arrived = append(m.arrived[:i:i], m.arrived[i+1:]...)
			staged = false
			break
		}
	}
	m.mu.Unlock()
	var errs []error
	parked := false
	if !staged {
		var err error
		parked, err = in.park()
		errs = append(errs, err)
	}
	if in.staging != nil {
		errs = append(errs, in.staging.Close())
	}
	if in.chunks != nil {
		errs = append(errs, in.chunks.Close())
	}
	if !staged && !parked {
		errs = append(errs, m.RemoveStaged(in.id))
	}
	if err := errors.Join(errs...); err != nil {
		m.o.Logger.Warn("staged snapshot not removed; the next start does", "range", in.id, "error", err)
	}
	m.mu.Lock()
	if !in.owned { // Else its folder is in use until release.
		delete(m.incoming, in.id)
	}
	m.mu.Unlock()
	m.background.Done()
}
