package outbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// ErrGap reports a record that does not follow the head of its stream.
var ErrGap = errors.New("outbox: record does not follow the head")

// ErrTrim reports a trim beyond the head of its stream.
var ErrTrim = errors.New("outbox: trim beyond the head")

// TrimRowsMax bounds the rows that the trims of one group delete: a group is applied in one batch,
// on the goroutine that serves all ranges of the node.
const TrimRowsMax = 10_000

// rangeRowsMin is the length of a run of rows from which a trim deletes it as one range. A range
// costs nothing for a row, against about 1 us, which made a full trim stall its node for 10 ms. But
// every read of the store looks through the ranges that were deleted since the last flush: with one
// for each 10 rows reads were 8 times slower, with one for 10,000 rows as fast as with none.
const rangeRowsMin = 1000

// Writer is the batch that takes the rows of an Outbox.
type Writer interface {
	Set(key, value []byte) error
	Delete(key []byte) error
	SingleDelete(key []byte) error
	DeleteRange(lower, upper []byte) error
}

// Outbox is the source side of the streams of one range. A stream goes through
//
//	ApplyRecord  head n-1 → n, record n queued
//	ApplyTrim    records up to n deleted, n at most the head
//	             with the zero place, once all are deleted: nothing is known of the stream, see forget
//
// and nothing else changes it. It has memory for each stream and none for a record: heads count
// the bytes of their stream, so the difference of two is what lies between.
type Outbox struct {
	id geo.RangeID
	// heads are the last record numbered in each stream.
	heads map[geo.Stream]change.OutboxHead
	// accounts are the streams of heads by account: a failover asks for those of one of very many.
	accounts map[geo.Account]map[geo.Stream]struct{}
	// trimmed is the last record deleted in each stream. Invariant: at most the head.
	trimmed map[geo.Stream]change.OutboxHead
	// waiting are the streams with records in the outbox: those whose head is not trimmed.
	waiting map[geo.Stream]struct{}
	// all is what waits in all streams; of is what waits of each copy, without a row for one of which
	// nothing does.
	all Backlog
	of  map[Copy]Backlog
	// closed is the greatest closed time that the range has committed.
	closed geo.Timestamp
	// moved are the streams whose head Finish has to write.
	moved map[geo.Stream]struct{}
	// answers say which of the queued records were surely answered; asked, that Finish has to write them.
	answers change.Answers
	asked   bool
	// staged are the records that the batch does not have yet: side by side they cost the memtable less than between
	// the rows that they change. Invariant: the batch has them before a deletion, and at its end.
	staged []staged
	// key and row are reused.
	key, row []byte
}

// Record is an encoded record on its way to the other location.
type Record struct {
	Stream     geo.Stream
	Seq        geo.Seq
	Hash       geo.Hash
	CommitTime geo.Timestamp
	Bytes      []byte
	// Chunks reports whether the record names payload chunks.
	Chunks bool
}

// Open loads the outbox of a range. It reads a head and a trim for each stream, and no record.
func Open(id geo.RangeID, from kv.Reader) (*Outbox, error) {
	o := &Outbox{
		id: id, heads: map[geo.Stream]change.OutboxHead{}, trimmed: map[geo.Stream]change.OutboxHead{},
		waiting: map[geo.Stream]struct{}{}, of: map[Copy]Backlog{}, moved: map[geo.Stream]struct{}{},
		accounts: map[geo.Account]map[geo.Stream]struct{}{},
	}
	if v, ok, err := from.Get(keys.Closed(id)); err != nil {
		return nil, err
	} else if ok {
		h, err := change.ParseHead(v)
		if err != nil {
			return nil, err
		}
		o.closed = geo.Timestamp(h.Seq)
	}
	if v, ok, err := from.Get(keys.Answers(id)); err != nil {
		return nil, err
	} else if ok {
		if o.answers, err = change.ParseAnswers(v); err != nil {
			return nil, err
		}
	}
	err := errors.Join(
		keys.EachStream(from, keys.Heads(id), func(s geo.Stream, v []byte) (err error) {
			o.heads[s], err = change.ParseOutboxHead(v)
			o.add(s)
			return err
		}),
		keys.EachStream(from, keys.Trims(id), func(s geo.Stream, v []byte) (err error) {
			o.trimmed[s], err = change.ParseOutboxHead(v)
			return err
		}),
	)
	for s, head := range o.heads {
		if trimmed := o.trimmed[s]; trimmed.Seq < head.Seq {
			o.waiting[s] = struct{}{}
			o.count(s, trimmed, head, 1)
		}
	}
	return o, err
}

// ApplyRecord takes a numbered record, which must follow the head of its stream, and
// returns it as the feed carries it. The result aliases encoded, which must stay as it is until Finish.
func (o *Outbox) ApplyRecord(r *change.Record, encoded []byte) (Record, error) {
	s := r.Stream()
	if head := o.Head(s); !head.Precedes(r.Seq, r.Prev) {
		return Record{}, fmt.Errorf("%w: %s: want #%d, got #%d", ErrGap, s, head.Seq+1, r.Seq)
	}
	before, known := o.heads[s]
	if !known {
		o.add(s)
	}
	head := change.OutboxHead{Head: geo.Head{Seq: r.Seq, Hash: change.HashOf(encoded)}, Volume: before.Add(r, encoded)}
	o.heads[s] = head
	o.moved[s], o.waiting[s] = struct{}{}, struct{}{}
	o.count(s, before, head, 1)
	o.staged = append(o.staged, staged{s, r.Seq, before.Volume, encoded})
	return Record{
		Stream: s, Seq: r.Seq, Hash: head.Hash, CommitTime: r.CommitTime, Bytes: encoded, Chunks: len(r.Chunks) > 0,
	}, nil
}

// count adds what lies between two places of a stream to what waits, or with by -1 takes it away.
func (o *Outbox) count(s geo.Stream, from, to change.OutboxHead, by int64) {
	of := o.of[copyOf(s)]
	for _, b := range [...]*Backlog{&o.all, &of} {
		b.Records += by * int64(to.Seq-from.Seq)
		b.Bytes += by * int64(to.Bytes-from.Bytes)
		b.Payload += by * int64(to.Payload-from.Payload)
	}
	if o.of[copyOf(s)] = of; of.Records == 0 {
		delete(o.of, copyOf(s))
	}
}

// ApplyClosed takes a closed time of the range.
func (o *Outbox) ApplyClosed(w Writer, t geo.Timestamp) error {
	o.closed = max(o.closed, t)
	return w.Set(keys.Closed(o.id), change.AppendHead(nil, geo.Head{Seq: geo.Seq(o.closed)}))
}

// ApplyTrim deletes the records of a stream up to a place in it, which is the head or one that Before returned. The
// zero place forgets the stream.
func (o *Outbox) ApplyTrim(w Writer, s geo.Stream, to change.OutboxHead) error {
	if to == (change.OutboxHead{}) {
		return o.forget(w, s)
	}
	head, from := o.heads[s], o.trimmed[s]
	if to.Seq <= from.Seq {
		return nil
	}
	if to.Seq > head.Seq || to.Seq == head.Seq && to != head {
		return fmt.Errorf("%w: %s: head #%d, trim up to #%d", ErrTrim, s, head.Seq, to.Seq)
	}
	if err := o.deleteRows(w, s, from.Seq+1, to.Seq+1); err != nil {
		return err
	}
	o.count(s, from, to, -1)
	o.trimmed[s] = to
	if to.Seq == head.Seq {
		delete(o.waiting, s)
	}
	return w.Set(keys.Trimmed(o.id, s), change.AppendOutboxHead(nil, to))
}

// deleteRows deletes rows [from, end) of a stream. Each was set once, so a SingleDelete annihilates
// it.
func (o *Outbox) deleteRows(w Writer, s geo.Stream, from, end geo.Seq) error {
	if err := o.writeStaged(w); err != nil {
		return err
	}
	if end-from >= rangeRowsMin {
		return w.DeleteRange(keys.Outbox(o.id, s, from), keys.Outbox(o.id, s, end))
	}
	for n := from; n < end; n++ {
		if err := w.SingleDelete(keys.Outbox(o.id, s, n)); err != nil {
			return err
		}
	}
	return nil
}

// Finish writes the records, and the heads that moved since the last call, once for all groups of a batch.
func (o *Outbox) Finish(w Writer) error {
	if err := o.writeStaged(w); err != nil {
		return err
	}
	for s := range o.moved {
		if err := w.Set(keys.Head(o.id, s), change.AppendOutboxHead(nil, o.heads[s])); err != nil {
			return err
		}
	}
	clear(o.moved)
	if !o.asked {
		return nil
	}
	o.asked = false
	return w.Set(keys.Answers(o.id), change.AppendAnswers(nil, &o.answers))
}

// ApplyAnswers takes what the header of a group says of those before it, after the records of the group: see
// change.Answers. While no record is queued, nothing is kept.
func (o *Outbox) ApplyAnswers(index, term, answered uint64, before, last geo.Timestamp, shipped bool) {
	had := o.answers.Term != 0
	if len(o.waiting) == 0 {
		o.answers, o.asked = change.Answers{}, o.asked || had
		return
	}
	o.answers.Add(index, term, answered, before, last, shipped)
	o.asked = true
}

// Answers says which of the queued records were surely answered.
func (o *Outbox) Answers() change.Answers { return o.answers.Clone() }

// Head returns the last record numbered in a stream, zero before the first.
func (o *Outbox) Head(s geo.Stream) geo.Head { return o.heads[s].Head }

// Heads returns a copy of all heads.
func (o *Outbox) Heads() map[geo.Stream]geo.Head { return headsOf(o.heads) }

// Trimmed returns the last record deleted in a stream.
func (o *Outbox) Trimmed(s geo.Stream) geo.Head { return o.trimmed[s].Head }

// Trims returns a copy of all last records deleted.
func (o *Outbox) Trims() map[geo.Stream]geo.Head { return headsOf(o.trimmed) }

func headsOf(from map[geo.Stream]change.OutboxHead) map[geo.Stream]geo.Head {
	out := make(map[geo.Stream]geo.Head, len(from))
	for s, h := range from {
		out[s] = h.Head
	}
	return out
}

// Ends returns up to where a stream is trimmed and its head: a record of it is known to this range
// from the one to the other.
func (o *Outbox) Ends(s geo.Stream) (trimmed, head change.OutboxHead) {
	return o.trimmed[s], o.heads[s]
}

// Before returns the place before record n of a stream from the record's row; ok is false if the
// outbox does not hold it. It reads the store alone.
func Before(from kv.Getter, id geo.RangeID, s geo.Stream, n geo.Seq) (at change.OutboxHead, ok bool, err error) {
	v, ok, err := from.Get(keys.Outbox(id, s, n))
	if err != nil || !ok {
		return at, false, err
	}
	before, encoded, err := change.ParseOutboxRow(v)
	if err != nil {
		return at, false, err
	}
	h, err := change.ParseHeader(encoded)
	return change.OutboxHead{Head: geo.Head{Seq: n - 1, Hash: h.Prev}, Volume: before}, err == nil, err
}

// Backlog is how much of the outbox the other location has not acknowledged.
type Backlog struct {
	// Bytes are those of the records, Payload those of the chunks that they name.
	Records, Bytes, Payload int64
	// Oldest is the commit time of the oldest record, zero for an empty outbox.
	Oldest geo.Timestamp
}

// Size is what the backlog counts for a budget: records and payload.
func (b Backlog) Size() int64 { return b.Bytes + b.Payload }

// Backlog counts the queued records. Oldest is left to the function of that name, which
// reads the store: oldest are the keys to give it.
func (o *Outbox) Backlog() (b Backlog, oldest [][]byte) {
	for s := range o.waiting {
		oldest = append(oldest, o.first(s))
	}
	return o.all, oldest
}

// Copy is the copy of an account that its streams of one epoch make.
type Copy struct {
	Account geo.Account
	Epoch   geo.Epoch
}

func copyOf(s geo.Stream) Copy { return Copy{s.Account, s.Epoch} }

// Backlogs counts the queued records of each copy that has any, without Oldest.
func (o *Outbox) Backlogs() map[Copy]Backlog { return maps.Clone(o.of) }

// Firsts are the keys to give Oldest, of each copy that has queued records.
func (o *Outbox) Firsts() map[Copy][][]byte {
	out := make(map[Copy][][]byte, len(o.of))
	for s := range o.waiting {
		out[copyOf(s)] = append(out[copyOf(s)], o.first(s))
	}
	return out
}

// first is the key of the oldest record that is queued of a stream.
func (o *Outbox) first(s geo.Stream) []byte { return keys.Outbox(o.id, s, o.trimmed[s].Seq+1) }

// Oldest returns the least commit time of the records under some outbox keys, zero for
// none. It skips those that were trimmed meanwhile, and those that cannot be decoded: their streams
// stop, and must not hold up the others.
func Oldest(from kv.Getter, outboxKeys [][]byte) (oldest geo.Timestamp, err error) {
	for _, key := range outboxKeys {
		v, ok, err := from.Get(key)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		_, encoded, err := change.ParseOutboxRow(v)
		if err != nil {
			continue
		}
		h, err := change.ParseHeader(encoded)
		if err != nil {
			continue
		}
		if oldest == 0 || h.CommitTime < oldest {
			oldest = h.CommitTime
		}
	}
	return oldest, nil
}

// Read returns encoded records of a stream from number n on: up to bytesMax in total, but
// at least one if it is there. They are not decoded; of a row that is none the record is empty, so that
// it stops its own stream, wherever it is read (R11). It reads the store alone.
func Read(from kv.Reader, id geo.RangeID, s geo.Stream, n geo.Seq, bytesMax int) ([][]byte, error) {
	it, err := from.Scan(keys.Outbox(id, s, n), keys.Outbox(id, s, ^geo.Seq(0)))
	if err != nil {
		return nil, err
	}
	var out [][]byte
	size := 0
	for it.Next() {
		key := it.Key()
		if geo.Seq(binary.BigEndian.Uint64(key[len(key)-8:])) != n+geo.Seq(len(out)) {
			break
		}
		_, encoded, _ := change.ParseOutboxRow(it.Value())
		size += len(encoded)
		if len(out) > 0 && size > bytesMax {
			break
		}
		out = append(out, append([]byte(nil), encoded...))
	}
	return out, it.Close()
}
