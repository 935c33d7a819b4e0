package admin

import (
	"context"
	"time"

	"antipode/geo"
)

// The life of a clone, by its OpenClone.
const (
	CloneLifeDefault = time.Hour
	CloneLifeLeast   = time.Second
	CloneLifeMax     = 24 * time.Hour
)

// Codes of refusals.
const (
	// CodeNoClone: the account has no clone open.
	CodeNoClone = "CloneNotFound"
	// CodeCloneRefused: no clone of the account can be opened now.
	CodeCloneRefused = "CloneRefused"
	// CodeNoCloneHost: no node has everything that a clone needs.
	CodeNoCloneHost = "NoCloneHost"
)

// OpenClone is how a clone is opened.
type OpenClone struct {
	// ForSeconds is after how long the clone ends by itself. Zero means CloneLifeDefault.
	ForSeconds float64 `json:"for_seconds,omitempty"`
}

// Clone is an open clone of an account: a writable copy of what its secondary location has, for a rehearsal.
type Clone struct {
	Account geo.Account `json:"account"`
	// Name is the account under which clients reach the clone, with the keys of Account.
	Name string `json:"name"`
	// Location and Node are where it is.
	Location geo.Location `json:"location"`
	Node     string       `json:"node"`
	Opened   Time         `json:"opened"`
	// Expires is when it ends by itself.
	Expires Time `json:"expires"`
	// TookSeconds is how long it took to open.
	TookSeconds float64 `json:"took_seconds"`
	// Cut is what the clone has of each service.
	Cut []CloneCut `json:"cut"`
	// Endpoints are where the port that answers serves it.
	Endpoints []CloneEndpoint `json:"endpoints,omitempty"`
}

// CloneCut is what a clone has of a service.
type CloneCut struct {
	Service string `json:"service"`
	// LastSyncTime is the Last Sync Time when the clone was opened: everything that was committed at or before it is in the
	// clone, and some of what is later. Absent with a Reason, which is why there was none.
	LastSyncTime Time   `json:"last_sync_time,omitzero"`
	Reason       string `json:"reason,omitempty"`
}

// CloneEndpoint is where a service of a clone is reached.
type CloneEndpoint struct {
	Service string `json:"service"`
	URL     string `json:"url"`
}

// OpenClone opens a clone of an account at its secondary location.
func (c *Client) OpenClone(ctx context.Context, name geo.Account, q OpenClone) (Clone, error) {
	return CallOpenClone.Do(ctx, c, At{Account: name}, q)
}

// Clone returns the open clone of an account.
func (c *Client) Clone(ctx context.Context, name geo.Account) (Clone, error) {
	return CallClone.Do(ctx, c, At{Account: name}, None{})
}

// DropClone ends the clone of an account and deletes it.
func (c *Client) DropClone(ctx context.Context, name geo.Account) (Clone, error) {
	return CallDropClone.Do(ctx, c, At{Account: name}, None{})
}
