// Package fake is a storage service of a few hundred lines: two maps and a delay
// between them. It exists so that the checks of packages oracle and load are
// themselves checked: a sound fake must pass, and a fake with any one of the
// lies in [Lies] must be caught.
package fake

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
)

// Lies are the promises a Store breaks. The zero value breaks none.
type Lies struct {
	// LoseOnCrash forgets the last acknowledged writes when Crash is called.
	LoseOnCrash bool
	// SyncTimeIsNow answers the present as Last Sync Time.
	SyncTimeIsNow bool
	// SkipAtSecondary never applies one change in so many there. Zero is off.
	SkipAtSecondary int
	// Tear applies half of some merges at the secondary.
	Tear bool
	// OtherTag gives the secondary's values tags of their own.
	OtherTag bool
}

// value is one object: an entity's properties or a blob's bytes.
type value struct {
	entity map[string]any
	blob   []byte
	etag   string
}

// change is one committed write of one path; a nil value is a delete.
type change struct {
	path string
	v    *value
	at   geo.Timestamp
}

// Store is one account's tables and blobs at both locations, as an http.Handler.
// The path's first segment names the endpoint, as in path style.
type Store struct {
	Lies  Lies
	Delay time.Duration // from a commit to its arrival at the secondary
	Clock clock.Clock

	mu                 sync.Mutex
	primary, secondary map[string]*value
	// log is every committed change; shipped of them are at the secondary.
	log     []change
	shipped int
	last    geo.Timestamp
	down    bool
}

// New returns an empty store.
func New(lies Lies, delay time.Duration) *Store {
	return &Store{
		Lies: lies, Delay: delay, Clock: clock.System{},
		primary: map[string]*value{}, secondary: map[string]*value{},
	}
}

// Crash makes the store answer nothing until Restart.
func (s *Store) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	if n := len(s.log); s.Lies.LoseOnCrash && n > 0 {
		s.log = s.log[:max(s.shipped, n-20)]
		s.primary = map[string]*value{}
		for _, c := range s.log {
			set(s.primary, c)
		}
	}
}

// Restart undoes Crash.
func (s *Store) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

func set(m map[string]*value, c change) {
	if c.v == nil {
		delete(m, c.path)
		return
	}
	m[c.path] = c.v
}

// ship applies at the secondary what is older than the delay. The caller holds mu.
func (s *Store) ship() {
	until := geo.TimestampOf(s.Clock.Now().Add(-s.Delay))
	for ; s.shipped < len(s.log) && s.log[s.shipped].at <= until; s.shipped++ {
		c := s.log[s.shipped]
		if n := s.Lies.SkipAtSecondary; n > 0 && s.shipped%n == n-1 {
			continue
		}
		if old := s.secondary[c.path]; s.Lies.Tear && s.shipped%5 == 0 && old != nil && c.v != nil && old.entity != nil {
			torn := &value{entity: maps.Clone(old.entity), etag: c.v.etag}
			torn.entity["Last"] = c.v.entity["Last"]
			c.v = torn
		}
		set(s.secondary, c)
	}
}

func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down || err != nil {
		panic(http.ErrAbortHandler)
	}
	s.ship()
	account, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	_, secondary := geo.SplitSecondary(account)
	switch {
	case r.URL.Query().Get("comp") == "stats":
		s.stats(w)
	case r.Method == http.MethodGet:
		s.get(w, path, secondary)
	case secondary:
		fail(w, storageerr.WriteOnSecondary)
	case path == "Tables" || r.URL.Query().Get("restype") == "container":
		w.WriteHeader(http.StatusCreated)
	default:
		s.write(w, r, path, body)
	}
}

func (s *Store) stats(w http.ResponseWriter) {
	t := s.Clock.Now()
	if !s.Lies.SyncTimeIsNow {
		t = t.Add(-s.Delay)
	}
	_, _ = fmt.Fprintf(w, "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>%s</LastSyncTime></GeoReplication></StorageServiceStats>",
		protocol.FormatHTTPTime(t.Truncate(time.Second)))
}

func (s *Store) get(w http.ResponseWriter, path string, secondary bool) {
	m := s.primary
	if secondary {
		m = s.secondary
	}
	v := m[path]
	if v == nil {
		fail(w, storageerr.ResourceNotFound)
		return
	}
	tag := v.etag
	if secondary && s.Lies.OtherTag {
		tag = strings.Replace(tag, "0", "1", 1)
	}
	w.Header().Set("ETag", tag)
	if v.entity == nil {
		_, _ = w.Write(v.blob)
		return
	}
	_ = json.NewEncoder(w).Encode(v.entity)
}

func (s *Store) write(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	s.last = max(s.last+2, geo.TimestampOf(s.Clock.Now()))
	c := change{path: path, at: s.last}
	if r.Method != http.MethodDelete {
		c.v = &value{blob: body, etag: protocol.BlobETag(s.last)}
	}
	if r.Method == http.MethodPost || r.Method == "MERGE" {
		c.v = &value{entity: map[string]any{}, etag: protocol.TableETag(s.last)}
		if old := s.primary[path]; r.Method == "MERGE" && old != nil {
			c.v.entity = maps.Clone(old.entity)
		}
		if err := json.Unmarshal(body, &c.v.entity); err != nil {
			fail(w, storageerr.InvalidInput)
			return
		}
		c.path = fmt.Sprintf("%s(PartitionKey='%s',RowKey='%s')", strings.SplitN(path, "(", 2)[0], c.v.entity["PartitionKey"], c.v.entity["RowKey"])
	}
	old := s.primary[c.path]
	match := r.Header.Get("If-Match")
	switch {
	case r.Method == http.MethodPost && old != nil:
		fail(w, storageerr.EntityAlreadyExists)
		return
	case old == nil && (match != "" || r.Method == http.MethodDelete):
		fail(w, storageerr.ResourceNotFound)
		return
	case match != "" && match != "*" && match != old.etag:
		fail(w, storageerr.UpdateConditionNotMet)
		return
	}
	set(s.primary, c)
	s.log = append(s.log, c)
	if c.v != nil {
		w.Header().Set("ETag", c.v.etag)
	}
	w.WriteHeader(http.StatusNoContent)
}

func fail(w http.ResponseWriter, row storageerr.Row) {
	w.Header().Set("x-ms-error-code", row.Code)
	w.WriteHeader(row.Status)
}
