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

// Writer is the batch that takes the rows of an Outbox.
type Writer interface {
	Set(key, value []byte) error
	SingleDelete(key []byte) error
}

// Outbox is the source side of the streams of one range. A stream goes through
//
//	ApplyRecord  head n-1 → n, record n queued
//	ApplyTrim    records up to n deleted, n at most the head
//
// and nothing else changes it.
type Outbox struct {
	id geo.RangeID
	// heads are the last record numbered in each stream.
	heads map[geo.Stream]geo.Head
	// trimmed is the last number deleted in each stream. Invariant: at most the head.
	trimmed map[geo.Stream]geo.Seq
	// sizes are the bytes of each queued record by stream, oldest first: a trim reads no
	// record again. records and bytes are their sums.
	sizes          map[geo.Stream][]uint32
	records, bytes int64
	// closed is the greatest closed time that the range has committed.
	closed geo.Timestamp
	// moved are the streams whose head Finish has to write.
	moved map[geo.Stream]struct{}
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

// Open loads the outbox of a range.
func Open(id geo.RangeID, from kv.Reader) (*Outbox, error) {
	o := &Outbox{
		id: id, heads: map[geo.Stream]geo.Head{}, trimmed: map[geo.Stream]geo.Seq{},
		sizes: map[geo.Stream][]uint32{}, moved: map[geo.Stream]struct{}{},
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
	return o, errors.Join(
		keys.EachStream(from, keys.Heads(id), func(s geo.Stream, v []byte) (err error) {
			o.heads[s], err = change.ParseHead(v)
			return err
		}),
		keys.EachStream(from, keys.Trims(id), func(s geo.Stream, v []byte) error {
			h, err := change.ParseHead(v)
			o.trimmed[s] = h.Seq
			return err
		}),
		keys.EachStream(from, keys.OutboxAll(id), func(s geo.Stream, v []byte) error {
			o.queued(s, len(v))
			return nil
		}),
	)
}

// ApplyRecord takes a numbered record, which must follow the head of its stream, and
// returns it as the feed carries it. The result aliases encoded.
func (o *Outbox) ApplyRecord(w Writer, r *change.Record, encoded []byte) (Record, error) {
	s := r.Stream()
	if head := o.heads[s]; !head.Precedes(r.Seq, r.Prev) {
		return Record{}, fmt.Errorf("%w: %s: want #%d, got #%d", ErrGap, s, head.Seq+1, r.Seq)
	}
	head := geo.Head{Seq: r.Seq, Hash: change.HashOf(encoded)}
	o.heads[s] = head
	o.moved[s] = struct{}{}
	o.queued(s, len(encoded))
	return Record{
		Stream: s, Seq: r.Seq, Hash: head.Hash, CommitTime: r.CommitTime, Bytes: encoded, Chunks: len(r.Chunks) > 0,
	}, w.Set(keys.Outbox(o.id, s, r.Seq), encoded)
}

// ApplyClosed takes a closed time of the range.
func (o *Outbox) ApplyClosed(w Writer, t geo.Timestamp) error {
	o.closed = max(o.closed, t)
	return w.Set(keys.Closed(o.id), change.AppendHead(nil, geo.Head{Seq: geo.Seq(o.closed)}))
}

// ApplyTrim deletes the acknowledged records of a stream, up to a number or its head. Each
// outbox key was set once, so a SingleDelete annihilates it.
func (o *Outbox) ApplyTrim(w Writer, s geo.Stream, upTo geo.Seq) error {
	upTo = min(upTo, o.heads[s].Seq)
	from := o.trimmed[s]
	if upTo <= from {
		return nil
	}
	for n := from + 1; n <= upTo; n++ {
		o.unqueued(s)
		if err := w.SingleDelete(keys.Outbox(o.id, s, n)); err != nil {
			return err
		}
	}
	o.trimmed[s] = upTo
	return w.Set(keys.Trimmed(o.id, s), change.AppendHead(nil, geo.Head{Seq: upTo}))
}

// Finish writes the heads that moved since the last call, once for all groups of a batch.
func (o *Outbox) Finish(w Writer) error {
	for s := range o.moved {
		if err := w.Set(keys.Head(o.id, s), change.AppendHead(nil, o.heads[s])); err != nil {
			return err
		}
	}
	clear(o.moved)
	return nil
}

// queued counts a record that was appended to a stream.
func (o *Outbox) queued(s geo.Stream, size int) {
	o.records++
	o.bytes += int64(size)
	o.sizes[s] = append(o.sizes[s], uint32(size))
}

// unqueued counts that the oldest record of a stream is deleted.
func (o *Outbox) unqueued(s geo.Stream) {
	queue := o.sizes[s]
	o.records--
	o.bytes -= int64(queue[0])
	if queue = queue[1:]; len(queue) == 0 {
		delete(o.sizes, s)
		return
	}
	o.sizes[s] = queue
}

// Head returns the last record numbered in a stream, zero before the first.
func (o *Outbox) Head(s geo.Stream) geo.Head { return o.heads[s] }

// Heads returns a copy of all heads.
func (o *Outbox) Heads() map[geo.Stream]geo.Head { return maps.Clone(o.heads) }

// Trimmed returns the last number deleted in a stream.
func (o *Outbox) Trimmed(s geo.Stream) geo.Seq { return o.trimmed[s] }

// Backlog is how much of the outbox the other location has not acknowledged.
type Backlog struct {
	Records, Bytes int64
	// Oldest is the commit time of the oldest record, zero for an empty outbox.
	Oldest geo.Timestamp
}

// Backlog counts the queued records. Oldest is left to the function of that name, which
// reads the store: oldest are the keys to give it.
func (o *Outbox) Backlog() (b Backlog, oldest [][]byte) {
	for s := range o.sizes {
		oldest = append(oldest, keys.Outbox(o.id, s, o.trimmed[s]+1))
	}
	return Backlog{Records: o.records, Bytes: o.bytes}, oldest
}

// Oldest returns the least commit time of the records under some outbox keys, zero for
// none. It skips those that were trimmed meanwhile.
func Oldest(from kv.Getter, outboxKeys [][]byte) (oldest geo.Timestamp, err error) {
	for _, key := range outboxKeys {
		v, ok, err := from.Get(key)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		h, err := change.ParseHeader(v)
		if err != nil {
			return 0, err
		}
		if oldest == 0 || h.CommitTime < oldest {
			oldest = h.CommitTime
		}
	}
	return oldest, nil
}

// Read returns encoded records of a stream from number n on: up to bytesMax in total, but
// at least one if it is there. It reads the store alone.
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
		size += len(it.Value())
		if len(out) > 0 && size > bytesMax {
			break
		}
		out = append(out, append([]byte(nil), it.Value()...))
	}
	return out, it.Close()
}
