package admin

import (
	"strings"

	"antipode/geo"
)

// Epoch is a reign of an account's primary.
type Epoch struct {
	Number   uint64       `json:"number"`
	Location geo.Location `json:"location"`
}

// EpochOf converts the vocabulary's epoch.
func EpochOf(e geo.Epoch) Epoch { return Epoch(e) }

// String is the form of logs: number@location.
func (e Epoch) String() string { return geo.Epoch(e).String() }

// Account is what every document says of an account.
type Account struct {
	Name geo.Account `json:"name"`
	// Redundancy is "LRS", "GRS" or "RA-GRS".
	Redundancy string       `json:"redundancy"`
	Primary    geo.Location `json:"primary"`
	// Secondary is empty, and absent, for LRS.
	Secondary geo.Location `json:"secondary,omitempty"`
	Epoch     Epoch        `json:"epoch"`
}

// AccountInfo is an account and where its services are reached: the answer of
// GET /v1/accounts/{name} and of a creation. It holds no key.
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
// /v1/accounts/{name}/keys. Whoever holds one may do anything with the account.
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
	// Key1 and Key2 are base64; an empty one is made by the server.
	Key1 string `json:"key1,omitempty"`
	Key2 string `json:"key2,omitempty"`
	// Ensure takes an account that is there, at either location, for made if it takes the
	// keys given.
	Ensure bool `json:"ensure,omitempty"`
}

// ConnectionString is what the official SDKs and tools take, with the first key
// and all endpoints. The scheme is that of the first endpoint.
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
