package verify

import (
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// headsIn returns the heads or cursors of an account's streams in a snapshot. They are written in
// the batches of the data they count, so that they are those of the rows in the same snapshot.
func headsIn(snap kv.Reader, r geo.RangeID, q *Question) ([]LaneHead, error) {
	var found [geo.LaneCount]*LaneHead
	of := func(s geo.Stream) *LaneHead {
		if s.Account != q.Account || s.Epoch != q.Epoch || s.Range != r {
			return &LaneHead{}
		}
		if found[s.Lane] == nil {
			found[s.Lane] = &LaneHead{Lane: s.Lane}
		}
		return found[s.Lane]
	}
	prefix := keys.Cursors(r)
	if q.Source {
		prefix = keys.Heads(r)
	}
	account := func(prefix []byte) []byte { return keys.AppendString(prefix, string(q.Account)) }
	err := keys.EachStream(snap, account(prefix), func(s geo.Stream, value []byte) error {
		if q.Source {
			h, err := change.ParseOutboxHead(value)
			of(s).Head = h.Head
			return err
		}
		c, err := change.ParseCursor(value)
		h := of(s)
		h.Head = c.Applied
		if n := len(c.Pairs); n > 0 {
			h.Named = c.Pairs[n-1].Head.Seq
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = keys.EachStream(snap, account(keys.Stops(r)), func(s geo.Stream, value []byte) error {
		stop, err := change.ParseStop(value)
		h := of(s)
		if h.Stopped = stop.Reason.String(); stop.Reason.Settles() {
			h.Base = stop.Here
		}
		return err
	})
	var out []LaneHead
	for _, h := range found {
		if h != nil {
			out = append(out, *h)
		}
	}
	slices.SortFunc(out, func(a, b LaneHead) int { return int(a.Lane) - int(b.Lane) })
	return out, err
}
