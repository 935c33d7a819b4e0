package catalog

import (
	"encoding/json"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Account is the catalog's record of an account. Both locations hold it.
type Account struct {
	Version    int          `json:"v"`
	Name       geo.Account  `json:"name"`
	Key1       []byte       `json:"key1"`
	Key2       []byte       `json:"key2"`
	Redundancy Redundancy   `json:"redundancy"`
	Primary    geo.Location `json:"primary"`
	// Secondary is empty where Redundancy has none.
	Secondary geo.Location    `json:"secondary"`
	Epoch     geo.EpochNumber `json:"epoch"`
	Created   geo.Timestamp   `json:"created"`
	// Active is set once the gates of both locations are committed (R7).
	Active bool `json:"active"`
	// Reserved is when the location that holds this row reserved the name for the other one, in
	// its own commit times; zero in every other row.
	Reserved geo.Timestamp `json:"reserved,omitempty"`
	// Operation is what is under way for the account, nil for nothing. It is the lock of the account:
	// another operation is refused. It belongs to Epoch.
	Operation *Operation `json:"operation,omitempty"`
	// WhenLate is LateAlert where Redundancy has no secondary.
	WhenLate WhenLate `json:"when_late,omitempty"`
	// Turn is that of the gates of Epoch at the primary (change.Gate.Turn).
	Turn uint32 `json:"turn,omitempty"`
	// LastFailover is when the primary last became the primary by a failover; zero for never.
	LastFailover geo.Timestamp `json:"last_failover,omitempty"`
	// LastFailoverWall is what the clock showed then where LastFailover is ahead of it (R6), zero elsewhere: see FailedOver.
	LastFailoverWall geo.Timestamp `json:"last_failover_wall,omitempty"`
	// Copied is a time after all that the last copy was made of, or that a former primary was rewound to; zero if none was. A
	// range of the secondary that was recovered with a loss, to before it, has a part of the copy (R4).
	Copied geo.Timestamp `json:"copied,omitempty"`
}

// formatVersion is the "v" of every catalog value.
const formatVersion = 1

// wrongVersion returns why a value of a version cannot be read: one of a later version only by that.
func wrongVersion(what string, v int) error {
	if v > formatVersion {
		return feature.Later("the "+what+" in the catalog", uint64(v), formatVersion)
	}
	return fmt.Errorf("catalog %s: unknown format version %d", what, v)
}

// GeoEpoch returns the present epoch of the account.
func (a *Account) GeoEpoch() geo.Epoch { return geo.Epoch{Number: a.Epoch, Location: a.Primary} }

// FailOver makes t, a commit time, that of the last failover. now is what the clock shows.
func (a *Account) FailOver(t geo.Timestamp, now time.Time) {
	if a.LastFailover, a.LastFailoverWall = t, 0; t.AheadOf(now) {
		a.LastFailoverWall = geo.TimestampOf(now)
	}
}

// FailedOver is when the last failover was, by the clock; zero for never.
func (a *Account) FailedOver() geo.Timestamp { return change.Shown(a.LastFailover, a.LastFailoverWall) }

// SameCreation reports whether both are records of one creation of a name.
func (a *Account) SameCreation(b *Account) bool {
	return a.Name == b.Name && a.GeoEpoch() == b.GeoEpoch() && a.Created == b.Created
}

// AccountPartition is where the catalog keeps an account.
func AccountPartition(a geo.Account) keys.Partition {
	return keys.Partition{Service: geo.Catalog, Account: a, Object: "account"}
}

// ParseAccount decodes a stored account.
func ParseAccount(b []byte) (*Account, error) {
	var a Account
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("catalog account: %w", err)
	}
	if a.Version != formatVersion {
		return nil, wrongVersion(fmt.Sprintf("account %s", a.Name), a.Version)
	}
	return &a, nil
}

// Encode returns the stored form.
func (a *Account) Encode() ([]byte, error) {
	a.Version = formatVersion
	return json.Marshal(a)
}

// GetAccount reads an account.
func GetAccount(get kv.Getter, name geo.Account) (*Account, error) {
	v, ok, err := get.Get(AccountPartition(name).Append(nil))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, storageerr.AccountNotFound
	}
	return ParseAccount(v)
}
