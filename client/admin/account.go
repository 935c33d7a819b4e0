package admin

import (
	"strings"

	"antipode/geo"
)

// Epoch is a period during which an account has one primary.
type Epoch struct {
	Number   geo.EpochNumber `json:"number"`
	Location geo.Location    `json:"location"`
}

// EpochOf converts the vocabulary's epoch.
func EpochOf(e geo.Epoch) Epoch { return Epoch(e) }

// String is the form of logs: number@location.
func (e Epoch) String() string { return geo.Epoch(e).String() }

// Account is the part of an account that every document has.
type Account struct {
	Name geo.Account `json:"name"`
	// Redundancy is "LRS", "GRS" or "RA-GRS".
	Redundancy string       `json:"redundancy"`
	Primary    geo.Location `json:"primary"`
	// Secondary is empty, and absent, for LRS.
	Secondary geo.Location `json:"secondary,omitempty"`
	Epoch     Epoch        `json:"epoch"`
	// WhenLate is what becomes of writes while changes have not reached the secondary within the RPO target: "slow" or
	// "refuse"; empty where they go on.
	WhenLate string `json:"when_late,omitempty"`
	// Operation is what is under way for the account, in words; empty for nothing. Another one is
	// refused until it has ended.
	Operation string `json:"operation,omitempty"`
	// OperationWaits is why Operation could not go on when that was tried last; absent if it goes on, and where the
	// answering process does not go on with it.
	OperationWaits string `json:"operation_waits,omitempty"`
	// FailoverPhase is how far a failover is, at the present primary: one of the Failover constants; empty without one.
	FailoverPhase string `json:"failover_phase,omitempty"`
	// Diverged is set after an unplanned failover, at the present primary. The former primary has answered that it
	// has what this one does not have, and not all of it is known. It serves nothing before account rebuild (R22).
	Diverged bool `json:"diverged,omitempty"`
	// WithoutPrimary is why no location is the account's primary, with what to do: see WithoutPrimary. Empty where one is.
	WithoutPrimary string `json:"without_primary,omitempty"`
	// LastFailover is when the primary became the primary by a failover; absent if it never did.
	LastFailover Time `json:"last_failover,omitzero"`
	// Copied is how far a bootstrap of the account is; absent without one, and where the answering process
	// does not know.
	Copied *Copied `json:"copied,omitempty"`
}

// Copied is what a bootstrap has numbered for the secondary so far. A part of it waits in the outbox.
type Copied struct {
	CopySize
	// Total is what the account held when its rows were counted, before the first was copied; what clients have
	// written and deleted since is in it only as far as the copy has come to it. Absent until all ranges have been
	// counted.
	Total *CopySize `json:"total,omitempty"`
	// Percent is how much of the bytes of Total, payload included, is copied, rounded down; 100 once all is
	// numbered. Absent without Total.
	Percent *float64 `json:"percent,omitempty"`
	// BytesPerSecond is how fast the copied bytes, payload included, grew over the last 30 s at most, as the process
	// that answers has seen it; absent until that has watched for 2 s.
	BytesPerSecond *float64 `json:"bytes_per_second,omitempty"`
	// BytesPerSecondMax is how much it copies per second at most; absent without a bound.
	BytesPerSecondMax uint64 `json:"bytes_per_second_max,omitempty"`
	// SecondsLeft is an estimate: what Total has more, at this rate. Absent if one of them is not known, and while
	// nothing is copied.
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
	// WaitingBytes are those of the account's changes that the secondary has not acknowledged, and of the payload
	// that they name. They are not those of the copy alone: clients write meanwhile.
	WaitingBytes uint64 `json:"waiting_bytes"`
}

// CopySize is an amount of an account's data.
type CopySize struct {
	Rows uint64 `json:"rows"`
	// Bytes are those of rows, PayloadBytes those of the payload that the rows name.
	Bytes        uint64 `json:"bytes"`
	PayloadBytes uint64 `json:"payload_bytes"`
}

// AccountInfo is an account and its endpoints: the answer of GET /v1/accounts/{name} and of a
// creation. It holds no key.
type AccountInfo struct {
	Account
	Endpoints []Endpoint `json:"endpoints"`
}

// Endpoint is where one service of an account is reached.
type Endpoint struct {
	// Service is "blob", "queue" or "table".
	Service string `json:"service"`
	// Primary and Secondary are base URLs; Secondary is empty without read access.
	Primary   string `json:"primary"`
	Secondary string `json:"secondary,omitempty"`
}

// AccountList is the answer of GET /v1/accounts.
type AccountList struct {
	Accounts []AccountInfo `json:"accounts"`
}

// Keys are an account's two keys, in base64: the answer of GET
// /v1/accounts/{name}/keys. Each of them gives full access to the account.
type Keys struct {
	Name geo.Account `json:"name"`
	Key1 string      `json:"key1"`
	Key2 string      `json:"key2"`
}

// NewAccount is the body of POST /v1/accounts.
type NewAccount struct {
	Name geo.Account `json:"name"`
	// Location becomes the primary; the other one of the pair the secondary.
	Location geo.Location `json:"location"`
	// Redundancy is "LRS", "GRS" or "RA-GRS", or the name of a SKU, as Standard_RAGRS. Empty means
	// RA-GRS, or that of a creation that stopped half way.
	Redundancy string `json:"redundancy,omitempty"`
	// Key1 and Key2 are base64; an empty one is made by the server.
	Key1 string `json:"key1,omitempty"`
	Key2 string `json:"key2,omitempty"`
	// Ensure makes it a success if the account exists, at either location, with the given keys
	// and redundancy.
	Ensure bool `json:"ensure,omitempty"`
}

// UpdateAccount is the body of POST /v1/accounts/{name}/update: Redundancy, Rebuild, WhenLate or Failover, or BytesPerSecond
// alone or with one of the first two.
type UpdateAccount struct {
	// Redundancy is "LRS", "GRS" or "RA-GRS", or the name of a SKU.
	Redundancy string `json:"redundancy,omitempty"`
	// Rebuild has the copy at the secondary made again from nothing; the redundancy stays.
	Rebuild bool `json:"rebuild,omitempty"`
	// Force is the account's name: its copy is deleted for a rebuild although the secondary is ahead, its clock
	// disagrees, or it cannot be asked. Rows that only the copy has are kept in the lost-and-found of the secondary
	// all the same.
	Force geo.Account `json:"force,omitempty"`
	// DryRun has a rebuild change nothing: the answer is the account as it is, or the refusal.
	DryRun bool `json:"dry_run,omitempty"`
	// BytesPerSecond is how much the bootstrap that this begins, or that is under way, copies per second at most,
	// rows and payload together; 0 is no bound. Alone it changes that of a bootstrap under way. Absent it leaves
	// that one as it is, and another has the node's bootstrap_bytes_per_second.
	BytesPerSecond *uint64 `json:"bytes_per_second,omitempty"`
	// WhenLate is "alert", "slow" or "refuse": see Account.
	WhenLate string `json:"when_late,omitempty"`
	// Failover begins or ends a failover of the account.
	Failover *Failover `json:"failover,omitempty"`
}

// Plans reports whether the request asks what a failover would do.
func (u UpdateAccount) Plans() bool { return u.Failover != nil && u.Failover.Plans() }

func (u UpdateAccount) reads() bool { return u.DryRun || u.Failover != nil && u.Failover.DryRun }

// AccountUpdated is the answer of POST /v1/accounts/{account}/update: the account as its primary has it now.
type AccountUpdated struct {
	// Loss is what an unplanned failover loses, or has lost, by service; of other changes it is absent.
	Loss []ServiceLoss `json:"loss,omitempty"`
	AccountInfo
	// Refused is why an unplanned failover would be refused, in the answer to a dry run; empty if it would not, and where
	// one is under way, or has been committed.
	Refused string `json:"refused,omitempty"`
	// Behind says why the other location does not have the change yet; empty if it has. It follows by
	// itself.
	Behind string `json:"behind,omitempty"`
}

// ConnectionString is the connection string for the official SDKs and tools, with the first key
// and all endpoints. Its scheme is the one of the first endpoint.
func ConnectionString(a AccountInfo, k Keys) string {
	scheme := "http"
	if len(a.Endpoints) > 0 && strings.HasPrefix(a.Endpoints[0].Primary, "https:") {
		scheme = "https"
	}
	var b strings.Builder
	put := func(name, value string) {
		if value != "" {
			b.WriteString(name + "=" + value + ";")
		}
	}
	put("DefaultEndpointsProtocol", scheme)
	put("AccountName", string(a.Name))
	put("AccountKey", k.Key1)
	for _, e := range a.Endpoints {
		if e.Service == "" {
			continue
		}
		word := strings.ToUpper(e.Service[:1]) + e.Service[1:]
		put(word+"Endpoint", e.Primary)
		put(word+"SecondaryEndpoint", e.Secondary)
	}
	return b.String()
}
