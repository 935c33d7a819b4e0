package catalog

import (
	"encoding/json"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/kv"
)

// seenRow is the row of an account's partition that holds the highest epoch.
const seenRow = "epoch"

// seen is the highest epoch ever seen for the name of an account. It outlives the account (R8):
// nothing deletes it.
type seen struct {
	Version int `json:"v"`
	// Epoch and Location are the epoch.
	Epoch    geo.EpochNumber `json:"epoch"`
	Location geo.Location    `json:"location"`
}

// SeenOp returns the change of the account's partition that keeps e as the highest epoch ever
// seen for its name.
func SeenOp(e geo.Epoch) (change.Op, error) {
	v, err := json.Marshal(seen{formatVersion, e.Number, e.Location})
	return change.Op{Row: []byte(seenRow), Value: v}, err
}

// SeenEpoch reads the highest epoch ever seen for a name; zero if the name was never used.
func SeenEpoch(get kv.Getter, name geo.Account) (geo.Epoch, error) {
	v, ok, err := get.Get(append(AccountPartition(name).Append(nil), seenRow...))
	if err != nil || !ok {
		return geo.Epoch{}, err
	}
	return parseSeen(v)
}

func parseSeen(b []byte) (geo.Epoch, error) {
	var s seen
	if err := json.Unmarshal(b, &s); err != nil {
		return geo.Epoch{}, fmt.Errorf("catalog epoch: %w", err)
	}
	if s.Version != formatVersion {
		return geo.Epoch{}, wrongVersion("epoch", s.Version)
	}
	return geo.Epoch{Number: s.Epoch, Location: s.Location}, nil
}
