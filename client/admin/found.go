package admin

import (
	"context"
	"encoding/json"

	"antipode/geo"
)

// FoundRowsMax is how many rows one page of the lost-and-found has at most.
const FoundRowsMax = 1000

// FoundQuery asks for a page of the lost-and-found of a location.
type FoundQuery struct {
	// Account is the one whose rows are listed, empty for all.
	Account geo.Account `json:"account,omitempty"`
	// After is Key of the last row of the page before.
	After string `json:"after,omitempty"`
	// Values asks for what the rows held.
	Values bool `json:"values,omitempty"`
}

// FoundRow is a row of the lost-and-found: what a row held before the settlement of its fork overwrote or deleted
// it at the location.
type FoundRow struct {
	// Key names the entry: hexadecimal digits.
	Key     string      `json:"key"`
	Account geo.Account `json:"account"`
	// Settlement is the stream and the number of the base of the settlement.
	Settlement string `json:"settlement"`
	// The row: as a difference of a comparison names it.
	Service   string `json:"service"`
	Container string `json:"container"`
	Object    string `json:"object"`
	Row       string `json:"row,omitempty"`
	Kept      Time   `json:"kept,omitzero"`
	Bytes     uint64 `json:"bytes"`
	// Chunks is how many chunks of payload were kept, PayloadBytes their length; PayloadMissing is how many chunks
	// that the row names the location did not have.
	Chunks         int    `json:"chunks,omitempty"`
	PayloadBytes   uint64 `json:"payload_bytes,omitempty"`
	PayloadMissing uint64 `json:"payload_missing,omitempty"`
	// Unreadable says why the entry cannot be decoded. Value is then all of it, and its payload is not known.
	Unreadable string `json:"unreadable,omitempty"`
	// RowKey and Value are the row as it is stored (docs/format), base64; Entity is that of a row of a table, as a
	// client may insert it again. With FoundQuery.Values alone.
	RowKey []byte          `json:"row_key,omitempty"`
	Value  []byte          `json:"value,omitempty"`
	Entity json.RawMessage `json:"entity,omitempty"`
}

// Found is a page of the lost-and-found. More reports that there are rows behind the last one.
type Found struct {
	Location geo.Location `json:"location"`
	Rows     []FoundRow   `json:"rows"`
	More     bool         `json:"more"`
}

// FoundChunk asks for a chunk of payload, counted from 0, of a row of the lost-and-found.
type FoundChunk struct {
	Key   string `json:"key"`
	Chunk int    `json:"chunk"`
}

// FoundPayload is a chunk of payload.
type FoundPayload struct {
	Data []byte `json:"data"`
}

// DropFound deletes rows of the lost-and-found, FoundRowsMax at most.
type DropFound struct {
	Keys []string `json:"keys"`
}

// FoundDropped is how many of them there were.
type FoundDropped struct {
	Dropped int `json:"dropped"`
}

// CodeNoFound: there is no such row in the lost-and-found, or no such chunk of it.
const CodeNoFound = "FoundRowNotFound"

// Found returns a page of the lost-and-found of a location.
func (c *Client) Found(ctx context.Context, l geo.Location, q FoundQuery) (Found, error) {
	return CallFound.Do(ctx, c, At{Location: l}, q)
}

// FoundPayload returns a chunk of payload of a row of the lost-and-found.
func (c *Client) FoundPayload(ctx context.Context, l geo.Location, q FoundChunk) (FoundPayload, error) {
	return CallFoundPayload.Do(ctx, c, At{Location: l}, q)
}

// dropBytesMax bounds the keys of one request: an admin port takes a body of 64 KiB.
const dropBytesMax = 48 << 10

// DropFound deletes rows of the lost-and-found of a location, for good, in as many requests as their keys need. After an
// error some are deleted. A call may be repeated.
func (c *Client) DropFound(ctx context.Context, l geo.Location, q DropFound) (out FoundDropped, err error) {
	for left := q.Keys; ; {
		n, size := 0, 0
		for n < len(left) && (n == 0 || size+len(left[n]) <= dropBytesMax) {
			size += len(left[n]) + len(`"",`)
			n++
		}
		d, err := CallDropFound.Do(ctx, c, At{Location: l}, DropFound{Keys: left[:n]})
		if err != nil {
			return out, err
		}
		out.Dropped += d.Dropped
		if left = left[n:]; len(left) == 0 {
			return out, nil
		}
	}
}
