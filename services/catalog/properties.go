package catalog

import (
	"encoding/json"
	"fmt"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Properties are the settings of a service of an account (protocol/service.md 2). What is nil or empty is as in a new
// account.
type Properties struct {
	Version       int      `json:"v"`
	Logging       *Logging `json:"logging,omitempty"`
	HourMetrics   *Metrics `json:"hour_metrics,omitempty"`
	MinuteMetrics *Metrics `json:"minute_metrics,omitempty"`
	// CORS are the rules in the order in which they are tried.
	CORS []CORSRule `json:"cors,omitempty"`
	// DefaultVersion of blobs serves requests that name no version.
	DefaultVersion string `json:"default_version,omitempty"`
}

// Retention is how long logs or metrics are kept, in days; zero for as long as nobody deletes them.
type Retention struct {
	Days int `json:"days,omitempty"`
}

// Logging says which requests are logged.
type Logging struct {
	Format    string    `json:"format"`
	Delete    bool      `json:"delete,omitempty"`
	Read      bool      `json:"read,omitempty"`
	Write     bool      `json:"write,omitempty"`
	Retention Retention `json:"retention"`
}

// Metrics says which figures are collected.
type Metrics struct {
	Enabled bool `json:"enabled,omitempty"`
	// APIs adds figures of each operation.
	APIs      bool      `json:"apis,omitempty"`
	Retention Retention `json:"retention"`
}

// CORSRule lets web pages of other origins send requests.
type CORSRule struct {
	Origins []string `json:"origins"`
	Methods []string `json:"methods"`
	// MaxAge is how long a browser may remember the answer to a preflight, in seconds.
	MaxAge int `json:"max_age,omitempty"`
	// Exposed and Allowed are names of headers of answers and of requests; one that ends in * is a prefix.
	Exposed []string `json:"exposed,omitempty"`
	Allowed []string `json:"allowed,omitempty"`
}

// propertiesRow is the row of the properties in their partition.
const propertiesRow = "properties"

// propertiesPartition is where the catalog keeps the properties of a service: among its containers, whose names
// are never empty, so that what copies or deletes these does so with the properties.
func propertiesPartition(s geo.Service, a geo.Account) keys.Partition {
	return ContainerPartition(s, a, "")
}

// PropertiesKey is the key of the properties of a service of an account.
func PropertiesKey(s geo.Service, a geo.Account) []byte {
	return append(propertiesPartition(s, a).Append(make([]byte, 0, 96)), propertiesRow...)
}

// IsProperties reports whether a partition of the catalog is that of the properties of a service.
func IsProperties(p keys.Partition) bool {
	for _, s := range geo.Services {
		if s != geo.Catalog && p == propertiesPartition(s, p.Account) {
			return true
		}
	}
	return false
}

// GetProperties reads the properties of a service of an account: those of a new account if none were set.
func GetProperties(from kv.Getter, s geo.Service, a geo.Account) (*Properties, error) {
	v, ok, err := from.Get(PropertiesKey(s, a))
	if err != nil || !ok {
		return &Properties{}, err
	}
	return ParseProperties(v)
}

// PropertiesCache keeps the properties of services, also of those that have set none: each request needs the CORS rules. It
// may be used concurrently. The zero value is ready.
type PropertiesCache struct{ rows Cache[Properties] }

// Get is GetProperties. The result is shared and not to be changed.
func (c *PropertiesCache) Get(from kv.Versioned, s geo.Service, a geo.Account) (*Properties, error) {
	return c.rows.Get(orEmpty{from}, PropertiesKey(s, a), func(b []byte) (*Properties, error) {
		if len(b) == 0 {
			return &Properties{}, nil
		}
		return ParseProperties(b)
	})
}

// orEmpty shows a row that does not exist as an empty one, so that a Cache keeps it.
type orEmpty struct{ kv.Versioned }

// Get implements kv.Getter.
func (s orEmpty) Get(key []byte) ([]byte, bool, error) {
	v, _, err := s.Versioned.Get(key)
	return v, true, err
}

// ParseProperties decodes stored properties.
func ParseProperties(b []byte) (*Properties, error) {
	var p Properties
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("catalog properties: %w", err)
	}
	if p.Version != formatVersion {
		return nil, wrongVersion("properties", p.Version)
	}
	return &p, nil
}

func (p *Properties) encode() ([]byte, error) {
	p.Version = formatVersion
	return json.Marshal(p)
}

// SetProperties changes the properties of a service of an account.
type SetProperties struct {
	Service geo.Service
	Account geo.Account
	// Change sets what it is to set, in properties that are its own.
	Change func(*Properties)
}

// Partition implements services.Write.
func (w *SetProperties) Partition() keys.Partition { return propertiesPartition(w.Service, w.Account) }

// Gone implements services.Write.
func (w *SetProperties) Gone() error { return storageerr.AccountNotFound }

// Evaluate implements services.Write.
func (w *SetProperties) Evaluate(get kv.Getter, _ geo.Timestamp) (services.Effect, error) {
	p, err := GetProperties(get, w.Service, w.Account)
	if err != nil {
		return services.Effect{}, err
	}
	w.Change(p)
	b, err := p.encode()
	return services.Effect{Ops: []change.Op{{Row: []byte(propertiesRow), Value: b}}}, err
}
