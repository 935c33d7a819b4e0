package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// incomingMax bounds the range snapshots that a node receives at once.
const incomingMax = 2

// Refusals of a range snapshot. Nothing changed here; the leader may try again.
var (
	ErrSnapshotBusy   = errors.New("node: takes no range snapshot now")
	ErrSnapshotUnused = errors.New("node: range snapshot not needed any more")
)

// Incoming is a range snapshot on its way into this node. Pieces are written to staged
// tables as they come, so that memory holds one of them. The state changes only at
// Finish. Its methods are called from one goroutine; Close ends it in any case.
type Incoming struct {
	n    *Node
	id   geo.RangeID
	from geo.NodeID
	msg  *pb.Message
	dir  string

	staging *state.Staging
	next    uint32
	whole   bool
	// chunks is the file of the payload chunks that the rows name: they may be millions.
	chunks  vfs.File
	chunksW *bufio.Writer

	// handed says that the scheduler owns the staged files. Guarded by Node.mu.
	handed bool
	// taken says that Raft accepted the snapshot; installed that it is in place; both
	// scheduler only.
	taken, installed bool
	done             chan error
}

// AcceptSnapshot begins to receive a range snapshot. It may be called from any
// goroutine.
func (n *Node) AcceptSnapshot(from geo.NodeID, h SnapshotHeader) (*Incoming, error) {
	r := n.byID[h.Range]
	if r == nil || !n.takesSnapshots() || n.full.Load() {
		return nil, ErrSnapshotBusy
	}
	if v := n.claimed(h.Range, r.Machine.Members(), replica.From(h.Message), from); v != nil {
		return nil, v
	}
	if r.Machine.AppliedState().Index >= h.Message.GetSnapshot().GetMetadata().GetIndex() {
		return nil, ErrSnapshotUnused
	}
	in := &Incoming{n: n, id: h.Range, from: from, msg: h.Message, dir: n.stagedDir(h.Range), done: make(chan error, 1)}
	n.mu.Lock()
	if n.failed != nil || n.closed || n.incoming[h.Range] != nil || len(n.incoming) >= incomingMax {
		n.mu.Unlock()
		return nil, ErrSnapshotBusy
	}
	n.incoming[h.Range] = in
	n.background.Add(1)
	n.mu.Unlock()
	if err := in.open(); err != nil {
		in.Close()
		return nil, fmt.Errorf("stage range snapshot: %w", err)
	}
	return in, nil
}

// TakeSnapshot implements SnapshotMember.
func (n *Node) TakeSnapshot(from geo.NodeID, h SnapshotHeader) (SnapshotStream, error) {
	in, err := n.AcceptSnapshot(from, h)
	if err != nil {
		return nil, err
	}
	return in, nil
}

func (in *Incoming) open() (err error) {
	fs := in.n.o.Engine.FS
	if err := fs.RemoveAll(in.dir); err != nil {
		return err
	}
	if err := mkdirDurable(fs, in.dir); err != nil {
		return err
	}
	if in.staging, err = in.n.state.NewStaging(in.dir, ranges.Spans(in.id)); err != nil {
		return err
	}
	if in.chunks, err = fs.Create(in.chunksPath(), vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	in.chunksW = bufio.NewWriter(in.chunks)
	return nil
}

func (in *Incoming) chunksPath() string { return in.n.o.Engine.FS.PathJoin(in.dir, "chunks") }

// Send takes the next piece and returns when it is written: that is its
// acknowledgement. After an error the snapshot is of no use: Close it.
func (in *Incoming) Send(_ context.Context, p Piece) error {
	if err := in.n.ctx.Err(); err != nil {
		return err
	}
	if in.whole {
		return fmt.Errorf("%w: number %d follows the last", ErrPiece, p.Number)
	}
	if err := p.check(in.next); err != nil {
		return err
	}
	in.next++
	in.whole = p.Last
	return eachRow(p.Rows, func(key, value []byte) error {
		if err := in.name(key, value); err != nil {
			return err
		}
		return in.staging.Add(key, value)
	})
}

// name notes the chunks that a row names.
func (in *Incoming) name(key, value []byte) error {
	refs, err := in.n.rowChunks(in.id, key, value)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if in.n.extents.Durable(ref.ID) {
			continue
		}
		if err := writeRef(in.chunksW, ref); err != nil {
			return err
		}
	}
	return nil
}

// Finish fetches the payload that the snapshot names, then lets it replace the replica's
// state, and returns when that is durable. ErrSnapshotUnused where the log has caught up
// by itself.
func (in *Incoming) Finish(ctx context.Context) error {
	if err := in.Stage(ctx); err != nil {
		return err
	}
	select {
	case err := <-in.done: // In the next pass: not for the sender's context to cut short.
		return err
	case <-in.n.ctx.Done():
		return in.n.ctx.Err()
	}
}

// Stage is the first part of Finish: it fetches the payload and hands the snapshot to the
// scheduler. What becomes of it comes from Installed.
func (in *Incoming) Stage(ctx context.Context) error {
	if !in.whole {
		return fmt.Errorf("%w: ended before the last", ErrPiece)
	}
	if err := errors.Join(in.staging.Finish(), in.chunksW.Flush()); err != nil {
		return err
	}
	ctx, cancel := joinContext(ctx, in.n.ctx)
	defer cancel()
	if err := in.fetchPayload(ctx); err != nil {
		return err
	}
	// The ingest waits for a flush of what the memtable holds of the range; better here
	// than on the scheduler.
	flushed, err := in.n.state.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-flushed:
	case <-ctx.Done():
		return ctx.Err()
	}
	in.n.mu.Lock()
	in.handed = true
	in.n.arrived = append(in.n.arrived, in)
	in.n.mu.Unlock()
	in.n.Wake()
	return nil
}

// Installed gives the result of a staged snapshot, once: nothing where the node ends
// before.
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
func (in *Incoming) fetchPayload(ctx context.Context) error {
	f, err := in.n.o.Engine.FS.Open(in.chunksPath())
	if err != nil {
		return err
	}
	err = eachRef(bufio.NewReader(f), func(ref extent.Ref) error {
		return in.n.fetchPaced(ctx, ref, in.from)
	})
	if err == nil {
		err = in.n.extents.Sync(ctx)
	}
	return errors.Join(err, f.Close())
}

// Close ends the transfer and removes what was staged, unless it was handed over. It may
// be called again.
func (in *Incoming) Close() {
	n := in.n
	n.mu.Lock()
	if n.incoming[in.id] != in {
		n.mu.Unlock()
		return
	}
	handed := in.handed
	for i, a := range n.arrived {
		if a == in { // The scheduler has not seen it.
			n.arrived = append(n.arrived[:i:i], n.arrived[i+1:]...)
			handed = false
			break
		}
	}
	n.mu.Unlock()
	var errs []error
	if in.staging != nil {
		errs = append(errs, in.staging.Close())
	}
	if in.chunks != nil {
		errs = append(errs, in.chunks.Close())
	}
	if !handed {
		errs = append(errs, n.removeStaged(in.id))
	}
	if err := errors.Join(errs...); err != nil {
		n.o.Logger.Warn("staged snapshot not removed; the next start does", "range", in.id, "error", err)
	}
	n.mu.Lock()
	delete(n.incoming, in.id)
	n.mu.Unlock()
	n.background.Done()
}
