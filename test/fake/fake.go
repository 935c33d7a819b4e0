// Package fake is a storage service of a few hundred lines: two maps and a delay
// between them, with the calls of package load and no other. It exists so that the checks of
// packages oracle and load are themselves checked: a sound fake must pass, and a fake with any one of the
// broken promises in [Faults] must be caught.
package fake

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"antipode/api/wire"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
)

// Faults are the promises a Store breaks. The zero value breaks none.
type Faults struct {
	// LoseOnCrash forgets the last acknowledged writes when Crash is called.
	LoseOnCrash bool
	// SyncTimeIsNow answers the present as Last Sync Time.
	SyncTimeIsNow bool
	// SkipAtSecondary never applies one change in so many there. Zero is off.
	SkipAtSecondary int
	// Tear applies half of some merges at the secondary.
	Tear bool
	// OtherTag gives the secondary's values tags other than the primary's.
	OtherTag bool
	// SplitTransactions applies only a part of some transactions at the secondary.
	SplitTransactions bool
	// ShowUncommitted lets readers see blocks that no list has committed.
	ShowUncommitted bool
	// DropUncommitted forgets all uncommitted blocks when Crash is called.
	DropUncommitted bool
	// ListMisses leaves every so-manyth blob out of the listings. Zero is off.
	ListMisses int
	// ListDeleted goes on listing some blobs that were deleted.
	ListDeleted bool
	// IgnoreConditions writes whatever the condition.
	IgnoreConditions bool
	// WrongOffset answers where an append ended in place of where it began, WrongCount one block too few, AppendTwice appends
	// some records twice, and SwapAppends some before the one that was the last.
	WrongOffset, WrongCount, AppendTwice, SwapAppends bool
	// IgnorePositions appends wherever the blob ends.
	IgnorePositions bool
	// AppendsLost leaves some appends out at the secondary.
	AppendsLost bool
	// SharedSnapshots shows the content of the blob as it is now in snapshots, and EarlySnapshots as it was before.
	SharedSnapshots, EarlySnapshots bool
	// KeepSnapshots answers that snapshots are deleted, and keeps them.
	KeepSnapshots bool
	// HideSnapshots lists no snapshots.
	HideSnapshots bool
	// StaleCopies copies a version that is not the newest, PartialCopies leaves the last block out of some copies, CopiesLost
	// acknowledges some and makes none, and CopiesSkipped leaves some out at the secondary.
	StaleCopies, PartialCopies, CopiesLost, CopiesSkipped bool
	// KeepCopied answers that copies are deleted, and keeps them.
	KeepCopied bool
}

// value is one object: an entity's properties, or a blob's bytes with its metadata
// and the blocks they are made of.
type value struct {
	entity   map[string]any
	blob     []byte
	metadata map[string]string
	blocks   []block
	etag     string
	// appended has the lengths of the blocks of an append blob, nil for other blobs.
	appended []int
	copied   copied
	// before is the value that this one replaced.
	before *value
}

// write is a value for one path; nil is a delete.
type write struct {
	path string
	v    *value
}

// change is what one request committed: more than one write if it was a transaction.
type change struct {
	writes []write
	at     geo.Timestamp
}

// Store is one account's tables and blobs at both locations, as an http.Handler.
// The path's first segment names the endpoint, as in path style.
type Store struct {
	Faults Faults
	Delay  time.Duration // from a commit to its arrival at the secondary
	Clock  clock.Clock

	mu                 sync.Mutex
	primary, secondary map[string]*value
	// uncommitted holds the blocks of blobs that are in no list yet. They are at the
	// primary alone.
	uncommitted map[string][]block
	// deleted holds blobs that were there once, for listings that still show them.
	deleted map[string]*value
	// log is every committed change; shipped of them are at the secondary.
	log     []change
	shipped int
	last    geo.Timestamp
	down    bool
	// copies counts the copies that were asked for.
	copies int
}

// New returns an empty store.
func New(faults Faults, delay time.Duration) *Store {
	return &Store{
		Faults: faults, Delay: delay, Clock: clock.System{},
		primary: map[string]*value{}, secondary: map[string]*value{},
		uncommitted: map[string][]block{}, deleted: map[string]*value{},
	}
}

// Crash makes the store answer nothing until Restart.
func (s *Store) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	if s.Faults.DropUncommitted {
		clear(s.uncommitted)
	}
	if n := len(s.log); s.Faults.LoseOnCrash && n > 0 {
		s.log = s.log[:max(s.shipped, n-20)]
		s.primary = map[string]*value{}
		for _, c := range s.log {
			set(s.primary, c.writes)
		}
	}
}

// Restart undoes Crash.
func (s *Store) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

func set(m map[string]*value, writes []write) {
	for _, w := range writes {
		if w.v == nil {
			delete(m, w.path)
			continue
		}
		m[w.path] = w.v
	}
}

// tick is the time of the next change.
func (s *Store) tick() geo.Timestamp {
	s.last = max(s.last+2, geo.TimestampOf(s.Clock.Now()))
	return s.last
}

// commit makes writes one change of the time tick gave last.
func (s *Store) commit(writes ...write) {
	for _, w := range writes {
		if old := s.primary[w.path]; w.v == nil && old.entity == nil {
			s.deleted[w.path] = old
		}
	}
	set(s.primary, writes)
	s.log = append(s.log, change{writes: writes, at: s.last})
}

// ship applies at the secondary what is older than the delay. The caller holds mu.
func (s *Store) ship() {
	until := geo.TimestampOf(s.Clock.Now().Add(-s.Delay))
	for ; s.shipped < len(s.log) && s.log[s.shipped].at <= until; s.shipped++ {
		writes := s.log[s.shipped].writes
		if n := s.Faults.SkipAtSecondary; n > 0 && s.shipped%n == n-1 {
			continue
		}
		if s.Faults.SplitTransactions && s.shipped%3 == 0 && len(writes) > 1 {
			writes = writes[:len(writes)/2]
		}
		if s.Faults.AppendsLost {
			writes = s.withoutAppends(writes)
		}
		if s.Faults.CopiesSkipped {
			writes = s.withoutCopies(writes)
		}
		if s.Faults.Tear && s.shipped%5 == 0 {
			writes = s.torn(writes)
		}
		set(s.secondary, writes)
	}
}

// torn leaves all but one property of each entity as the secondary has it.
func (s *Store) torn(writes []write) []write {
	var out []write
	for _, w := range writes {
		if old := s.secondary[w.path]; old != nil && w.v != nil && old.entity != nil {
			torn := &value{entity: maps.Clone(old.entity), etag: w.v.etag}
			torn.entity["Last"] = w.v.entity["Last"]
			w.v = torn
		}
		out = append(out, w)
	}
	return out
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
	q := r.URL.Query()
	switch {
	case q.Get("comp") == "stats":
		s.stats(w)
	case r.Method == http.MethodGet && strings.Contains(path, "("):
		s.readTable(w, path, q, secondary)
	case r.Method == http.MethodGet:
		s.readBlobs(w, path, q, secondary)
	case secondary:
		fail(w, storageerr.WriteOnSecondary)
	case path == "Tables" || q.Get("restype") == "container":
		w.WriteHeader(http.StatusCreated)
	case path == "$batch":
		s.batch(w, r, body)
	case r.Method == http.MethodPost || strings.Contains(path, "("):
		s.writeEntity(w, r, path, body)
	default:
		s.writeBlob(w, r, path, q.Get("comp"), body)
	}
}

func (s *Store) stats(w http.ResponseWriter) {
	t := s.Clock.Now()
	if !s.Faults.SyncTimeIsNow {
		t = t.Add(-s.Delay)
	}
	_, _ = fmt.Fprintf(w, "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>%s</LastSyncTime></GeoReplication></StorageServiceStats>",
		wire.FormatHTTPTime(t.Truncate(time.Second)))
}

// at returns what a location holds.
func (s *Store) at(secondary bool) map[string]*value {
	if secondary {
		return s.secondary
	}
	return s.primary
}

// tag is the tag of a value as a location gives it.
func (s *Store) tag(v *value, secondary bool) string {
	if secondary && s.Faults.OtherTag {
		return strings.Replace(v.etag, "0", "1", 1)
	}
	return v.etag
}

func fail(w http.ResponseWriter, row storageerr.Row) {
	w.Header().Set("x-ms-error-code", row.Code)
	w.WriteHeader(row.Status)
}
