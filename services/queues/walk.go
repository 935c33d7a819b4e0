package queues

import (
	"bytes"
	"context"
	"errors"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// Bounds of a round.
const (
	// keepLooks is how many partitions a step passes, keepRows how many messages it looks at for one that has expired.
	keepLooks = 64
	keepRows  = 1000
	// visitsMax bounds the steps of a round for one queue.
	visitsMax = 20
)

// walk is a round of a Keeper over the keys of the queue service, in those ranges that its process leads.
type walk struct {
	// next is where it goes on, nil before it has begun; expired the place within the partition there from which messages
	// are to be looked at, nil for the first.
	next, expired []byte
	// visits counts the steps for the queue at next. left means that there is more to do for one than they have done.
	visits int
	left   bool
}

// to goes on at a key.
func (w *walk) to(next []byte) { w.next, w.expired, w.visits = next, nil, 0 }

// found is what a walk stops at.
type found struct {
	prefix []byte // of its partition
	queue  Queue
	// dictionary means that it is the dictionary of the queue; else messages of the subqueue have expired, from a place on.
	dictionary bool
	subqueue   SubqueueID
	from       []byte
}

// goOn goes on with the round.
func (k *Keeper) goOn(ctx context.Context, now time.Duration) error {
	w := &k.round
	if w.next == nil {
		*w = walk{next: keys.AppendService(nil, geo.Queue)}
	}
	r, end := k.rangeAt(w.next)
	if end == nil {
		w.next, k.nextRound = nil, now
		if !w.left {
			k.nextRound += k.o.Every
		}
		return nil
	}
	if r == nil {
		w.to(end)
		return nil
	}
	f, err := k.pass(r, end)
	switch {
	case err != nil || f == nil:
		return err
	case f.dictionary:
		more, err := k.keep(ctx, f.queue)
		if w.visits++; err == nil && more && w.visits < visitsMax {
			return nil
		}
		w.left = w.left || more && err == nil
		w.to(keys.PrefixEnd(f.prefix))
		return err
	}
	next, err := k.s.CollectExpired(ctx, Subqueue{f.queue, f.subqueue}, f.from)
	if err != nil || next == nil {
		w.to(keys.PrefixEnd(f.prefix))
		return err
	}
	w.expired = next
	return nil
}

// rangeAt returns the range of the queue service that holds a key, nil if this process does not lead it, and its end; nil at
// the end of the service.
func (k *Keeper) rangeAt(key []byte) (r *ranges.Range, end []byte) {
	for _, d := range k.s.o.Stamp.Route().Service(geo.Queue) {
		if d.Span.End > string(key) {
			return k.o.Leader(d.ID), []byte(d.Span.End)
		}
	}
	return nil, nil
}

// pass walks over partitions of a range until there is something to do, or the step is over.
func (k *Keeper) pass(r *ranges.Range, end []byte) (f *found, err error) {
	snap := r.State().Snapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	w := &k.round
	it, err := snap.Scan(w.next, end)
	if err != nil {
		w.to(end)
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	rows := keepRows
	ok := it.Next()
	for looks := 0; ok && looks < keepLooks && rows > 0; looks++ {
		p, row, err := keys.ParsePartition(it.Key())
		if err != nil {
			w.to(end)
			return nil, err
		}
		prefix := bytes.Clone(it.Key()[:len(it.Key())-len(row)])
		if !bytes.Equal(prefix, w.next) {
			w.to(prefix)
		}
		f, err := k.examine(snap, r.Machine.Gate(p.Account), p, prefix, &rows)
		if err != nil {
			w.to(keys.PrefixEnd(prefix))
			return nil, err
		}
		if f != nil || w.expired != nil { // There are more of its messages.
			return f, nil
		}
		w.to(keys.PrefixEnd(prefix))
		ok = it.SeekGE(w.next)
	}
	if !ok {
		w.to(end)
	}
	return nil, nil
}

// examine returns what is to be done for a partition, nil for nothing. It takes the messages that it looks at from rows; if that is
// not enough the walk goes on at its place in the partition.
func (k *Keeper) examine(snap kv.Snapshot, g change.Gate, p keys.Partition, prefix []byte, rows *int) (*found, error) {
	q := Queue{p.Account, p.Container, p.Generation}
	begin := k.round.expired
	k.round.expired = nil // Nothing may be left to look at here: the queue was cleared, or its primary is elsewhere now.
	if g.Role != change.RolePrimary || !g.Open {
		return nil, nil
	}
	if p.Object == "" {
		return &found{prefix: prefix, queue: q, dictionary: true}, nil
	}
	var id SubqueueID
	if err := id.UnmarshalText([]byte(p.Object)); err != nil {
		return nil, err
	}
	h, _, err := readHead(snap, prefix, id)
	if err != nil || h.count == 0 || h.state == StateToBeDeleted {
		return nil, err
	}
	if size := k.o.Scale.UpSize; size > 0 && h.count >= size {
		k.look(q)
	}
	now := geo.TimestampOf(k.s.o.Clock.Now())
	from, next, err := findExpired(snap, prefix, begin, now, rows)
	k.round.expired = next
	if from == nil {
		return nil, err
	}
	return &found{prefix: prefix, queue: q, subqueue: id, from: from}, nil
}

// findExpired looks for a message that has expired, from a place of a subqueue on, nil for the first. It returns the place of
// one, or where to go on if rows are used up.
func findExpired(r kv.Reader, prefix, from []byte, now geo.Timestamp, rows *int) (at, next []byte, err error) {
	if from == nil {
		from = []byte{rowMessage}
	}
	it, err := r.Scan(append(bytes.Clone(prefix), from...), append(bytes.Clone(prefix), rowMessage+1))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for it.Next() {
		if *rows == 0 {
			return nil, bytes.Clone(it.Key()[len(prefix):]), nil
		}
		*rows--
		_, m, err := parseRow(prefix, it.Key(), it.Value())
		if err != nil {
			return nil, nil, err
		}
		if m.expired(now) {
			return bytes.Clone(it.Key()[len(prefix):]), nil, nil
		}
	}
	return nil, nil, nil
}
