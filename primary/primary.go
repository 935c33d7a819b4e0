package primary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// Stamp is the stamp of this location.
type Stamp interface {
	ranges.Submitter
	ranges.Routed
	// SubmitAll is Submit for many commands: see stamp.Stamp.SubmitAll.
	SubmitAll(ctx context.Context, r geo.RangeID, cmds []ranges.Command) []error
}

// Primary is the write role of one location. Methods may be called concurrently.
type Primary struct {
	stamp Stamp
	late  atomic.Pointer[lateness] // nil as long as nothing was late
	// slowed are the writes that are delayed now.
	slowed slowed
	// Await waits, for a moment at most, for what ErrUnconfirmed is returned for, and reports whether a write may be tried
	// again. Nil means no wait.
	Await func(ctx context.Context) bool
	// Images are the bounds of images that begin here. The zero value is that of production.
	Images ImageBounds
}

// New returns the write role over a stamp.
func New(s Stamp) *Primary { return &Primary{stamp: s} }

// ErrGateClosed is returned while the account takes no writes at this location.
var ErrGateClosed = storageerr.ServerBusy.Saying("The account does not take writes at this location now. Please retry your request.")

// ErrUnconfirmed is returned while it is not confirmed that the account has no higher epoch at the other location (R21).
// Nothing was committed.
var ErrUnconfirmed = storageerr.ServerBusy.Saying(
	"The location has not confirmed yet that it still is the primary location of the account. Please retry your request.")

// Write implements services.Writer.
func (p *Primary) Write(ctx context.Context, w services.Write) error {
	if _, rest := w.(services.Remainder); !rest {
		if err := p.admit(ctx, w.Partition()); err != nil {
			return err
		}
	}
	r := p.stamp.Route().Of(w.Partition())
	err := p.stamp.Submit(ctx, r, commandOf(w))
	if p.Await != nil && errors.Is(err, ErrUnconfirmed) && p.Await(ctx) {
		err = p.stamp.Submit(ctx, r, commandOf(w)) // Nothing had happened.
	}
	return err
}

// commandOf returns the command that evaluates a write.
func commandOf(w services.Write) ranges.Command {
	c := &command{w: w}
	if d, may := w.(services.Deletion); may && d.Deletes() {
		return deletion{c}
	}
	return c
}

// deletion is a command that only deletes.
type deletion struct{ *command }

// Deletes implements ranges.Deletion.
func (deletion) Deletes() {}

// command evaluates one service write on a range's leader.
type command struct{ w services.Write }

// Evaluate implements ranges.Command.
func (c *command) Evaluate(tx *ranges.Tx) error {
	p := c.w.Partition()
	gate := tx.Gate(p.Account)
	if gate.Role != change.RolePrimary || !gate.Open {
		return ErrGateClosed
	}
	if !tx.Confirmed(p.Account) {
		return ErrUnconfirmed
	}
	if p.Generation != (keys.Generation{}) {
		key := keys.ClosedGeneration(tx.Range(), p.Service, p.Account, p.Container, p.Generation)
		if closed, err := tx.GenerationClosed(key); err != nil {
			return err
		} else if closed {
			return c.w.Gone()
		}
	}
	// The commit time is above the creation of the generation, the newest catalog state that the
	// command relies on (R6).
	at := tx.Timestamp(p.Generation.Created)
	if f, begins := c.w.(services.Founder); begins {
		f.InEpoch(gate.Epoch.Number)
	}
	if t, timed := c.w.(services.Timed); timed {
		t.InTime(geo.TimestampOf(tx.Now()))
	}
	effect, err := c.w.Evaluate(tx, at)
	if err != nil {
		return err
	}
	if !tx.Allows(max(effect.Level, feature.Base)) {
		return ranges.ErrLevel
	}
	if len(effect.Ops) == 0 {
		return nil // It found nothing to do, as a Get of an empty queue does.
	}
	if plantedbugs.Planted(plantedbugs.SplitTransaction) && len(effect.Ops) > 2 {
		first := change.Record{CommitTime: at, Partition: p.Append(nil), Ops: effect.Ops[:1]}
		if err := tx.Change(p, first); err != nil {
			return err
		}
		at, effect.Ops = tx.Timestamp(at), effect.Ops[1:]
	}
	rec := change.Record{CommitTime: at, Partition: p.Append(nil), Ops: effect.Ops, Chunks: effect.Chunks}
	if err := nameAll(tx, p, gate, &rec); err != nil {
		return err
	}
	return tx.Change(p, rec)
}

// Rehearses implements ranges.Rehearsed.
func (*command) Rehearses() (always bool) { return false }

// nameAll has a record name all payload of the rows that it sets, also what earlier records have named, unless the copy at
// the other location has it. A copy that is made again begins empty (R17), and gets the rows of before from the image. One
// whose fork is settled may lack what was written here meanwhile, until it is compared (R16). A row that came ahead of
// that would name payload that is at no node there, and a replica that is lost meanwhile could not be fed by a
// snapshot (R3).
func nameAll(tx *ranges.Tx, p keys.Partition, gate change.Gate, rec *change.Record) error {
	if p.Service != geo.Blob || !gate.Numbered {
		return nil
	}
	var named map[extent.ChunkID]bool // What rec names, once a row has payload: a copy has thousands of rows with it.
	for _, op := range rec.Ops {
		if op.Delete {
			continue
		}
		key := append(p.Append(nil), op.Row...)
		refs, err := blobs.RowChunks(key, op.Value)
		if err != nil {
			return fmt.Errorf("payload of row %x of container %q, blob %q: %w", op.Row, p.Container, p.Object, err)
		}
		if named == nil && len(refs) > 0 {
			named = idsOf(rec.Chunks)
		}
		if !slices.ContainsFunc(refs, func(ref extent.Ref) bool { return !named[ref.ID] }) {
			continue
		}
		if lacks, err := mayLack(tx, p, gate, key); err != nil {
			return err
		} else if lacks {
			rec.Chunks = addRefs(rec.Chunks, refs)
			maps.Copy(named, idsOf(refs))
		}
	}
	return nil
}

// mayLack reports whether the copy may lack payload of a row that was written before. What is in a container of the epoch
// was named in this epoch, unless the account was there without numbers first: then an image of the epoch is awaited.
func mayLack(tx *ranges.Tx, p keys.Partition, gate change.Gate, key []byte) (bool, error) {
	m, err := tx.Image(p.Account)
	if err != nil {
		return false, err
	}
	why, _ := tx.Stopped(geo.Stream{Account: p.Account, Epoch: gate.Epoch, Range: tx.Range(), Lane: p.Lane()})
	switch {
	case why.Reason.Settles():
		return true, nil
	case m.Epoch == gate.Epoch:
		return m.Done == nil && bytes.Compare(key, m.Next) >= 0, nil // The image has sent the rows before Next.
	case ranges.Awaits(m, gate.Epoch):
		return true, nil
	}
	return p.Generation.Epoch != gate.Epoch.Number, nil
}

// CloseGeneration commits that a generation takes no more changes, in every range that holds keys of the
// account in its service. A deletion is answered after it (R8).
func (p *Primary) CloseGeneration(ctx context.Context, s geo.Service, a geo.Account, container string, g keys.Generation) error {
	for _, d := range p.stamp.Route().Account(s, a) {
		key := keys.ClosedGeneration(d.ID, s, a, keys.TableContainer(container), g)
		if err := p.stamp.Submit(ctx, d.ID, closeGeneration{key}); err != nil {
			return err
		}
	}
	return nil
}

type closeGeneration struct{ key []byte }

// Evaluate implements ranges.Command.
func (c closeGeneration) Evaluate(tx *ranges.Tx) error {
	tx.CloseGeneration(c.key)
	return nil
}

// Deletes implements ranges.Deletion: a deletion is answered after it.
func (c closeGeneration) Deletes() {}

// kindCloseGeneration is closeGeneration's kind.
const kindCloseGeneration = "primary.closeGeneration"

// Commands are the commands of this package that a node accepts from other nodes.
func Commands() ranges.Commands {
	return ranges.Commands{
		kindCloseGeneration: func(body []byte) (ranges.Portable, error) { return closeGeneration{body}, nil },
		kindRepair:          parseRepair,
		kindTake:            parseTake,
		kindImage:           parseImage,
		kindCount:           parseCount,
	}
}

// Kind implements ranges.Portable.
func (c closeGeneration) Kind() string { return kindCloseGeneration }

// Encode implements ranges.Portable.
func (c closeGeneration) Encode() []byte { return c.key }

// EncodeResult implements ranges.Portable.
func (c closeGeneration) EncodeResult() []byte { return nil }

// DecodeResult implements ranges.Portable.
func (c closeGeneration) DecodeResult([]byte) error { return nil }
