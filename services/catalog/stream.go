package catalog

import (
	"encoding/json"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// stream is what a location knows of the stream that comes from another one.
type stream struct {
	Version int `json:"v"`
	// Made is the incarnation of the stream in the bus: when it was made.
	Made time.Time `json:"made"`
}

// noAccount stands in place of an account for what a location keeps for itself. No account has such a name
// (geo.Account.Valid), so no gate ever opens for it, and nothing of it is shipped.
const noAccount geo.Account = "-"

// StreamPartition is where a location keeps what it knows of incoming streams, a row for each origin.
func StreamPartition() keys.Partition {
	return keys.Partition{Service: geo.Catalog, Account: noAccount, Object: "stream"}
}

// StreamOp returns the change of StreamPartition that keeps when the stream of an origin was made.
func StreamOp(origin geo.Location, made time.Time) (change.Op, error) {
	v, err := json.Marshal(stream{formatVersion, made.UTC()})
	return change.Op{Row: []byte(origin), Value: v}, err
}

// StreamMade reads when the stream of an origin was made, as this location knew it last; zero if it never knew.
func StreamMade(get kv.Getter, origin geo.Location) (time.Time, error) {
	v, ok, err := get.Get(append(StreamPartition().Append(nil), origin...))
	if err != nil || !ok {
		return time.Time{}, err
	}
	return parseStream(v)
}

func parseStream(b []byte) (time.Time, error) {
	var s stream
	if err := json.Unmarshal(b, &s); err != nil {
		return time.Time{}, fmt.Errorf("catalog stream: %w", err)
	}
	if s.Version != formatVersion {
		return time.Time{}, wrongVersion("stream", s.Version)
	}
	return s.Made, nil
}
