package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// Lane is one stream as the node's folder has it: its source side where From is the outbox
// here, its receiving side where there is a cursor.
type Lane struct {
	Type    string      `json:"type"`
	Range   geo.RangeID `json:"range"`
	Account geo.Account `json:"account"`
	Epoch   string      `json:"epoch"`
	// Source is the range of the location that the stream comes from.
	Source geo.RangeID `json:"source_range"`
	Lane   geo.Lane    `json:"lane"`
	// Side is source or receiver.
	Side string `json:"side"`
	// Head is the last number given here.
	Head     uint64 `json:"head,omitempty"`
	HeadHash string `json:"head_hash,omitempty"`
	// Acknowledged is the last number that the other location acknowledged.
	Acknowledged uint64 `json:"acknowledged,omitempty"`
	// OutboxFrom to OutboxTo are the numbers that wait for it, OutboxRecords in all.
	OutboxFrom    uint64 `json:"outbox_from,omitempty"`
	OutboxTo      uint64 `json:"outbox_to,omitempty"`
	OutboxRecords uint64 `json:"outbox_records,omitempty"`
	OutboxBytes   uint64 `json:"outbox_bytes,omitempty"`
	// Cursor is the last number applied here; Closed the greatest closed time received of
	// the source range; SyncTime that of the stream (R13), empty while unknown.
	Cursor     uint64 `json:"cursor,omitempty"`
	CursorHash string `json:"cursor_hash,omitempty"`
	Closed     string `json:"closed,omitempty"`
	SyncTime   string `json:"sync_time,omitempty"`
	// Missing is the greatest closed head not yet applied, 0 for none.
	Missing uint64 `json:"missing,omitempty"`
}

// Text implements Row.
func (l Lane) Text() string {
	name := fmt.Sprintf("r%d  %s/%s/r%d/l%d", l.Range, l.Account, l.Epoch, l.Source, l.Lane)
	if l.Side == "source" {
		box := "outbox empty"
		if l.OutboxRecords > 0 {
			box = fmt.Sprintf("outbox %d to %d (%d records, %d bytes)", l.OutboxFrom, l.OutboxTo, l.OutboxRecords, l.OutboxBytes)
		}
		return fmt.Sprintf("%-44s  source    head %d %s, acknowledged %d, %s", name, l.Head, l.HeadHash, l.Acknowledged, box)
	}
	out := fmt.Sprintf("%-44s  receiver  cursor %d %s, sync time %s", name, l.Cursor, l.CursorHash, orDash(l.SyncTime))
	if l.Missing > 0 {
		out += fmt.Sprintf(", misses up to %d", l.Missing)
	}
	return out
}

// lanes collects the streams of one range.
type lanes struct {
	byStream map[geo.Stream]*Lane
	sync     map[geo.Stream]change.Cursor
	closed   map[geo.SourceRange]cursor.Known
}

// Lanes reports the streams of each account: head, acknowledged number and outbox of those
// that this location is the source of, cursor and sync time of those it receives; as of
// the last flush, as State. It returns how many places are damaged.
func Lanes(n Node, o Options, emit Emit) (damaged int, err error) {
	r := &report{emit: emit}
	store, err := openState(n)
	if err != nil {
		return 1, r.damage(Damage{Store: "state", Detail: "a start would set it aside: " + err.Error()})
	}
	defer func() { err = joinClose(err, store) }()
	for _, id := range stored.IDs() {
		if o.Range != 0 && o.Range != id {
			continue
		}
		if err := r.lanesOf(store, id, o.Account); err != nil {
			return r.damaged, err
		}
	}
	return r.damaged, nil
}

func (r *report) lanesOf(store *state.Store, id geo.RangeID, account geo.Account) error {
	all := lanes{map[geo.Stream]*Lane{}, map[geo.Stream]change.Cursor{}, map[geo.SourceRange]cursor.Known{}}
	for _, prefix := range [][]byte{keys.Heads(id), keys.Trims(id), keys.OutboxAll(id), keys.Cursors(id), keys.ReceivedAll(id)} {
		err := r.scan(store, prefix, keys.PrefixEnd(prefix), func(key, value []byte) error {
			err := all.take(id, key, value)
			if err == nil {
				return nil
			}
			return r.damage(Damage{Store: "state", File: fmt.Sprintf("row %x", key), Detail: err.Error()})
		})
		if err != nil {
			return err
		}
	}
	all.setSyncTimes()
	streams := slices.SortedFunc(maps.Keys(all.byStream), func(a, b geo.Stream) int {
		return cmp.Or(cmp.Compare(all.byStream[a].Side, all.byStream[b].Side), a.Compare(b))
	})
	for _, s := range streams {
		if account != "" && s.Account != account {
			continue
		}
		if err := r.emit(*all.byStream[s]); err != nil {
			return err
		}
	}
	return nil
}

func (a *lanes) of(id geo.RangeID, s geo.Stream, side string) *Lane {
	l := a.byStream[s]
	if l == nil {
		l = &Lane{
			Type: "lane", Range: id, Account: s.Account, Epoch: s.Epoch.String(), Source: s.Range, Lane: s.Lane, Side: side,
		}
		a.byStream[s] = l
	}
	return l
}

// take adds one row of the range.
func (a *lanes) take(id geo.RangeID, key, value []byte) error {
	k, err := keys.ParseRangeKey(key)
	if err != nil {
		return err
	}
	switch k.Kind {
	case keys.KindHead, keys.KindTrimmed:
		h, err := change.ParseOutboxHead(value)
		if err != nil {
			return err
		}
		l := a.of(id, k.Stream, "source")
		if k.Kind == keys.KindTrimmed {
			l.Acknowledged = uint64(h.Seq)
			return nil
		}
		l.Head, l.HeadHash = uint64(h.Seq), fmt.Sprintf("%016x", uint64(h.Hash))
	case keys.KindOutbox:
		_, encoded, err := change.ParseOutboxRow(value)
		if err != nil {
			return err
		}
		l := a.of(id, k.Stream, "source")
		if l.OutboxRecords == 0 {
			l.OutboxFrom = uint64(k.Seq)
		}
		l.OutboxTo = uint64(k.Seq)
		l.OutboxRecords++
		l.OutboxBytes += uint64(len(encoded))
	case keys.KindCursor:
		c, err := change.ParseCursor(value)
		if err != nil {
			return err
		}
		l := a.of(id, k.Stream, "receiver")
		l.Cursor, l.CursorHash = uint64(c.Applied.Seq), fmt.Sprintf("%016x", uint64(c.Applied.Hash))
		a.sync[k.Stream] = c
	case keys.KindReceived:
		c, err := change.ParseClosed(value)
		if err != nil {
			return err
		}
		a.closed[geo.SourceRange{Origin: c.Origin, Range: c.Range}] = cursor.KnownOf(&c)
	}
	return nil
}

// setSyncTimes fills in what follows from cursors and closed times together.
func (a *lanes) setSyncTimes() {
	for s, c := range a.sync {
		k := a.closed[s.Source()]
		if k.Closed == 0 {
			continue
		}
		l := a.byStream[s]
		at := cursor.ProgressOf(s, &c)
		l.Closed, l.Missing = k.Closed.String(), uint64(at.Behind)
		if sync := (cursor.Progress{Closed: k.Closed, Wall: k.Wall}).SyncTime(at); sync != 0 {
			l.SyncTime = sync.String()
		}
	}
}
