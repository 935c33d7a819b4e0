package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/ranges"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

func joinClose(err error, c io.Closer) error { return errors.Join(err, c.Close()) }

// openState opens the state store read-only. Damage that makes its library fail, or panic, comes
// back as an error.
func openState(n Node) (s *state.Store, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the store's library gave up: %v", p)
		}
	}()
	return state.Open(n.fs.PathJoin(n.Dir, "state"), state.Options{
		FS: n.fs, ReadOnly: true, Logger: slog.New(slog.DiscardHandler),
	})
}

// Total is how many rows of one kind a range has.
type Total struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// StateRange is a summary of a range's state.
type StateRange struct {
	Type  string      `json:"type"`
	Range geo.RangeID `json:"range"`
	// Replica is the replica's Raft id, Phase what may be expected of it.
	Replica geo.ReplicaID `json:"replica,omitempty"`
	Phase   string        `json:"phase,omitempty"`
	// Applied is where the state stands; a start would apply the log's entries above it
	// again, up to Committed at least. Zero where the log cannot be read.
	Applied   uint64           `json:"applied"`
	Committed uint64           `json:"committed,omitempty"`
	LogLast   uint64           `json:"log_last,omitempty"`
	Kinds     map[string]Total `json:"kinds"`
}

// Text implements Row.
func (r StateRange) Text() string {
	out := fmt.Sprintf("range %d  replica %d (%s), applied %d; log to %d, committed %d", r.Range, r.Replica, orDash(r.Phase), r.Applied, r.LogLast, r.Committed)
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		out += fmt.Sprintf("\n      %-10s  %8d rows  %12d bytes", kind, r.Kinds[kind].Rows, r.Kinds[kind].Bytes)
	}
	return out
}

// State reports the rows of the state store in order of their keys, then a summary of each
// range. It is the state as of the last flush: the log above it, which Log shows, is not
// in it. It returns how many places are damaged.
func State(n Node, o Options, emit Emit) (damaged int, err error) {
	r := &report{emit: emit}
	store, err := openState(n)
	if err != nil {
		return 1, r.damage(Damage{Store: "state", Detail: "a start would set it aside: " + err.Error()})
	}
	defer func() { err = joinClose(err, store) }()
	kinds := map[geo.RangeID]map[string]Total{}
	visit := func(key, value []byte) error {
		row, err := describeRow(key, value)
		if err != nil {
			if err := r.damage(Damage{Store: "state", File: fmt.Sprintf("row %s %s", row.Kind, row.Key), Detail: err.Error()}); err != nil {
				return err
			}
		}
		if kinds[row.Range] == nil {
			kinds[row.Range] = map[string]Total{}
		}
		t := kinds[row.Range][row.Kind]
		kinds[row.Range][row.Kind] = Total{t.Rows + 1, t.Bytes + int64(row.Bytes)}
		if o.Summary || err != nil || o.Kind != "" && o.Kind != row.Kind {
			return nil
		}
		return emit(row)
	}
	spans := []state.Span{{}}
	if o.Range != 0 {
		spans = ranges.Spans(o.Range)
	}
	for _, s := range spans {
		if err := r.scan(store, s.Lower, s.Upper, visit); err != nil {
			return r.damaged, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(kinds)) {
		row := StateRange{Type: "state-range", Range: id, Kinds: kinds[id]}
		if err := r.rangeState(n, store, &row); err != nil {
			return r.damaged, err
		}
		if err := emit(row); err != nil {
			return r.damaged, err
		}
	}
	return r.damaged, nil
}

// rangeState adds what stands beside the rows.
func (r *report) rangeState(n Node, store *state.Store, row *StateRange) error {
	if a, err := ranges.AppliedIn(store, row.Range); err == nil {
		row.Applied = a.Index
	}
	i, err := membership.Load(n.fs, n.Dir, row.Range)
	if err != nil {
		if err := r.damage(Damage{Store: "replicas", File: fmt.Sprintf("r%d", row.Range), Detail: err.Error()}); err != nil {
			return err
		}
	}
	if i != nil {
		row.Replica, row.Phase = i.Replica, i.Phase.String()
	}
	log, err := seglog.Open(n.fs.PathJoin(n.Dir, "log"), state.Options{FS: n.fs, ReadOnly: true})
	if err != nil {
		return nil //nolint:nilerr // Log reports what is wrong with the log.
	}
	if l, err := logRange(log, row.Range); err == nil {
		row.Committed, row.LogLast = l.Commit, l.Last
	}
	return log.Close()
}

// scan calls f for every row of a span that can be read. Where a table is damaged it says
// so and goes on at the next table's first key.
func (r *report) scan(store *state.Store, lower, upper []byte, f func(key, value []byte) error) error {
	starts, err := store.TableStarts()
	if err != nil {
		return err
	}
	for {
		var stopped error // by f
		at, err := walk(store, lower, upper, func(key, value []byte) error {
			stopped = f(key, value)
			return stopped
		})
		if stopped != nil || err == nil {
			return stopped
		}
		next := slices.IndexFunc(starts, func(k []byte) bool { return bytes.Compare(k, at) > 0 })
		detail := fmt.Sprintf("rows behind key %x cannot be read: %v", at, err)
		if err := r.damage(Damage{Store: "state", Detail: detail}); err != nil {
			return err
		}
		if next < 0 || upper != nil && bytes.Compare(starts[next], upper) >= 0 {
			return nil
		}
		lower = starts[next]
	}
}

// walk calls f for the rows of a span and returns the last key it reached, or lower. The
// store's library panics at some damage, as it must where a node runs on it.
func walk(store *state.Store, lower, upper []byte, f func(key, value []byte) error) (at []byte, err error) {
	at = bytes.Clone(lower)
	it, err := store.Scan(lower, upper)
	if err != nil {
		return at, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the store's library gave up: %v", p)
		}
		err = joinClose(err, it)
	}()
	for it.Next() {
		at = append(at[:0], it.Key()...)
		if err := f(it.Key(), it.Value()); err != nil {
			return at, err
		}
	}
	return at, nil
}
