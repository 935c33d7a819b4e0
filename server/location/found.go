package location

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"antipode/api/tables/json"
	"antipode/api/tables/odata"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/tables"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// foundPageBytes bounds the keys of one page of the lost-and-found, and its values if they are asked for, but for the
// first row.
const foundPageBytes = 1 << 20

// Found lists what the settlements of forks have overwritten or deleted at this location (R16).
func (l *Location) Found(ctx context.Context, q wire.FoundQuery) (wire.Found, error) {
	out := wire.Found{Location: l.o.Name}
	after, err := hex.DecodeString(q.After)
	if err != nil {
		return out, noFound("the row " + q.After)
	}
	for _, d := range l.o.Route.Ranges() {
		prefix := keys.AppendAccount(nil, d.Service, keys.LostAndFound)
		if q.Account != "" {
			prefix = keys.AppendContainer(nil, d.Service, keys.LostAndFound, string(q.Account), keys.Generation{})
		}
		if err := l.foundIn(ctx, d, foundFrom(prefix, after), keys.PrefixEnd(prefix), q.Values, &out); err != nil || out.More {
			return out, err
		}
	}
	return out, nil
}

// foundFrom returns where a page begins that follows the key after, of the keys with a prefix.
func foundFrom(prefix, after []byte) []byte {
	if len(after) > 0 && bytes.Compare(after, prefix) >= 0 {
		return append(bytes.Clone(after), 0)
	}
	return prefix
}

// foundIn adds the rows of the lost-and-found with keys in [from, end) to a page.
func (l *Location) foundIn(ctx context.Context, d route.Range, from, end []byte, values bool, out *wire.Found) error {
	if bytes.Compare(from, end) >= 0 {
		return nil
	}
	snap, err := ranges.Snapshot(ctx, l, d.ID)
	if err != nil {
		return err
	}
	return errors.Join(addFound(snap, from, end, values, out), snap.Close())
}

// addFound is foundIn for a state of the range.
func addFound(state kv.Reader, from, end []byte, values bool, out *wire.Found) error {
	it, err := state.Scan(from, end)
	if err != nil {
		return err
	}
	for size := 0; it.Next(); {
		size += len(it.Key())
		if values {
			size += len(it.Value())
		}
		if len(out.Rows) == wire.FoundRowsMax || size > foundPageBytes && len(out.Rows) > 0 {
			out.More = true
			break
		}
		out.Rows = append(out.Rows, describeFound(it.Key(), it.Value(), values))
	}
	return it.Close()
}

// describeFound describes a row of the lost-and-found. One that cannot be decoded is named too: it may be dropped.
func describeFound(key, value []byte, values bool) wire.FoundRow {
	of, inner, err := keys.ParsePartition(key)
	at := describeDifference(verify.Difference{Key: inner})
	row := wire.FoundRow{
		Key: hex.EncodeToString(key), Account: geo.Account(of.Container), Settlement: of.Object, Service: at.Service, Container: at.Container,
		Object: at.Object, Row: at.Row,
	}
	f, notFound := change.ParseFound(value)
	if err = errors.Join(err, notFound); err != nil {
		row.Unreadable, f = err.Error(), change.Found{Value: value}
	} else {
		row.Kept = wire.Time{Time: f.At.Time()}
	}
	row.Bytes, row.Chunks, row.PayloadMissing = uint64(len(f.Value)), len(f.Chunks), f.Missing
	for _, ref := range f.Chunks {
		row.PayloadBytes += uint64(ref.Length)
	}
	if !values {
		return row
	}
	row.RowKey, row.Value = bytes.Clone(inner), bytes.Clone(f.Value)
	if of.Service == geo.Table && err == nil {
		row.Entity = entityOf(at.Container, inner, f.Value)
	}
	return row
}

// entityOf returns a row of a table as JSON, nil if it cannot be decoded.
func entityOf(table string, key, value []byte) []byte {
	e, err := tables.ParseRow(key, value)
	if err != nil {
		return nil
	}
	out, err := json.MinimalMetadata.AppendEntity(nil, &odata.Set{Table: table}, odata.First, e)
	if err != nil {
		return nil
	}
	return out
}

// FoundPayload returns a chunk of payload of a row of the lost-and-found.
func (l *Location) FoundPayload(ctx context.Context, q wire.FoundChunk) (wire.FoundPayload, error) {
	key, err := hex.DecodeString(q.Key)
	if err != nil {
		return wire.FoundPayload{}, noFound("the row " + q.Key)
	}
	d, err := l.foundRange(key)
	if err != nil {
		return wire.FoundPayload{}, err
	}
	var value []byte
	err = l.Read(ctx, d.ID, func(s ranges.State) error {
		var ok bool
		if value, ok, err = s.Get(key); err == nil && !ok {
			return noFound("the row " + q.Key)
		}
		return err
	})
	if err != nil {
		return wire.FoundPayload{}, err
	}
	f, err := change.ParseFound(value)
	if err != nil {
		return wire.FoundPayload{}, err
	}
	if q.Chunk < 0 || q.Chunk >= len(f.Chunks) {
		return wire.FoundPayload{}, noFound(fmt.Sprintf("chunk %d of the row %s", q.Chunk, q.Key))
	}
	ref := f.Chunks[q.Chunk]
	data := make([]byte, ref.Length)
	if _, err := l.ReadChunk(ref, 0, data); err != nil {
		return wire.FoundPayload{}, err
	}
	return wire.FoundPayload{Data: data}, nil
}

// DropFound deletes rows of the lost-and-found for good.
func (l *Location) DropFound(ctx context.Context, q wire.DropFound) (out wire.FoundDropped, err error) {
	stamp, err := l.Stamp()
	if err != nil {
		return out, err
	}
	of := map[geo.RangeID][][]byte{}
	for _, name := range q.Keys {
		key, err := hex.DecodeString(name)
		if err != nil {
			return out, noFound("the row " + name)
		}
		d, err := l.foundRange(key)
		if err != nil {
			return out, err
		}
		of[d.ID] = append(of[d.ID], key)
	}
	for _, id := range l.o.Route.IDs() {
		if len(of[id]) == 0 {
			continue
		}
		cmd := &ranges.DropFound{Keys: of[id]}
		if err := stamp.Submit(ctx, id, cmd); err != nil {
			return out, err
		}
		out.Dropped += cmd.Dropped
	}
	return out, nil
}

// foundRange returns the range that keeps a row of the lost-and-found.
func (l *Location) foundRange(key []byte) (route.Range, error) {
	p, _, err := keys.ParsePartition(key)
	for _, d := range l.o.Route.Ranges() {
		if err == nil && p.Account == keys.LostAndFound && d.Service == p.Service {
			return d, nil
		}
	}
	return route.Range{}, noFound(fmt.Sprintf("the row %x", key))
}

func noFound(what string) error {
	return &wire.Error{
		Status: http.StatusNotFound, Code: wire.CodeNoFound,
		Message: what + " is not in the lost-and-found of this location: antipodectl fork found list shows it",
	}
}
