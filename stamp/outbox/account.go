package outbox

import (
	"bytes"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Tally is what Account counted.
type Tally struct {
	// Records are the rows that were looked at, Bytes the bytes in them.
	Records int
	Bytes   int64
	// Missing are numbers between what a stream has trimmed and its head that have no row. Extra are rows
	// that are trimmed, as far as the first call looks at them, and for each stream at most one that is
	// above its head.
	Missing, Extra int64
	// First is the first stream with either.
	First geo.Stream
}

// Add takes in what comes after t.
func (t *Tally) Add(next Tally) {
	if !t.Unaccounted() {
		t.First = next.First
	}
	t.Records += next.Records
	t.Bytes += next.Bytes
	t.Missing += next.Missing
	t.Extra += next.Extra
}

// Unaccounted reports whether any record is missing or extra.
func (t *Tally) Unaccounted() bool { return t.Missing != 0 || t.Extra != 0 }

// Place is where Account goes on. The zero Place is the first stream.
type Place struct {
	// stream is the key of the head of the stream that is next, nil for the first.
	stream []byte
	// next is the record of it that is next, 0 for those before the first.
	next geo.Seq
}

// Begun reports whether the place is behind the beginning.
func (p Place) Begun() bool { return p.stream != nil }

// streamsMax bounds the streams that one call of Account looks at.
const streamsMax = 256

// Account compares the rows of the outbox of a range with the heads and trims of its streams, from a
// place on: what is queued is what was numbered and not trimmed, and every number between is there
// (R14, R16). rows reads one state of the range, [RangeLocal, its end); two calls may read two. It ends
// after rowsMax rows, 256 streams or the last stream; the place that follows the last has not Begun.
func Account(rows kv.Iterator, id geo.RangeID, from Place, rowsMax int) (Place, Tally, error) {
	a := accounting{rows: rows, id: id, left: rowsMax}
	heads := keys.Heads(id)
	if from.stream == nil {
		from.stream = heads
	}
	for range streamsMax {
		if a.left == 0 {
			break
		}
		if !rows.SeekGE(from.stream) || !bytes.HasPrefix(rows.Key(), heads) {
			return Place{}, a.Tally, nil
		}
		key := bytes.Clone(rows.Key())
		if !bytes.Equal(key, from.stream) {
			from.next = 0
		}
		next, err := a.stream(key, rows.Value(), from.next)
		if err != nil {
			return Place{}, a.Tally, err
		}
		if next > 0 {
			return Place{stream: key, next: next}, a.Tally, nil
		}
		from = Place{stream: append(key, 0)}
	}
	return from, a.Tally, nil
}

// accounting is one call of Account.
type accounting struct {
	Tally
	rows kv.Iterator
	id   geo.RangeID
	left int
}

// stream accounts for a stream from a record on, and returns the one to go on from, 0 after the last.
func (a *accounting) stream(key, value []byte, from geo.Seq) (next geo.Seq, err error) {
	s, _, err := keys.ParseStreamKey(key)
	if err != nil {
		return 0, err
	}
	head, err := change.ParseOutboxHead(value)
	if err != nil {
		return 0, err
	}
	trimmed, err := a.trimmed(s)
	if err != nil {
		return 0, err
	}
	// What was looked at before may be trimmed since.
	next = max(from, trimmed+1)
	start := next
	if from == 0 {
		start = 0
	}
	for ok := a.rows.SeekGE(keys.Outbox(a.id, s, start)); ok; ok = a.rows.Next() {
		n, mine, err := a.seq(s)
		if err != nil {
			return 0, err
		}
		if !mine {
			break
		}
		if a.left == 0 {
			return next, nil
		}
		a.left--
		a.Records++
		a.Bytes += int64(len(a.rows.Value()))
		if n > head.Seq {
			a.count(s, 0, 1)
			break
		}
		if n <= trimmed {
			a.count(s, 0, 1)
			continue
		}
		a.count(s, int64(n-next), 0)
		next = n + 1
	}
	if next <= head.Seq {
		a.count(s, int64(head.Seq+1-next), 0)
	}
	return 0, nil
}

func (a *accounting) trimmed(s geo.Stream) (geo.Seq, error) {
	key := keys.Trimmed(a.id, s)
	if !a.rows.SeekGE(key) || !bytes.Equal(a.rows.Key(), key) {
		return 0, nil
	}
	h, err := change.ParseOutboxHead(a.rows.Value())
	return h.Seq, err
}

// seq returns the number of the row that the iterator is at, and whether it is one of the outbox of s.
func (a *accounting) seq(s geo.Stream) (n geo.Seq, mine bool, err error) {
	key := a.rows.Key()
	if !bytes.HasPrefix(key, keys.OutboxAll(a.id)) {
		return 0, false, nil
	}
	of, rest, err := keys.ParseStreamKey(key)
	if err != nil || of != s {
		return 0, false, err
	}
	v, _, err := keys.CutUint64(rest)
	return geo.Seq(v), true, err
}

func (a *accounting) count(s geo.Stream, missing, extra int64) {
	if missing+extra != 0 && !a.Unaccounted() {
		a.First = s
	}
	a.Missing += missing
	a.Extra += extra
}
