package fake

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"antipode/services/storageerr"
)

// snapshotMark is between the path of a blob and the id of a snapshot in the path of the snapshot.
const snapshotMark = "?snapshot="

// listingKey orders the paths of blobs and snapshots as listings do: snapshots before the blob.
func listingKey(path string) string {
	name, id, taken := strings.Cut(path[strings.Index(path, "/")+1:], snapshotMark)
	if !taken {
		id = "~"
	}
	return name + " " + id
}

func inListing(a, b string) int { return cmp.Compare(listingKey(a), listingKey(b)) }

// snapshotAt returns what a location has of a blob, or of the snapshot with an id.
func (s *Store) snapshotAt(path, id string, secondary bool) *value {
	m := s.at(secondary)
	if id == "" {
		return m[path]
	}
	v, now := m[path+snapshotMark+id], m[path]
	switch {
	case v != nil && s.Faults.SharedSnapshots && now != nil:
		return now
	case v != nil && s.Faults.EarlySnapshots && v.before != nil && v.before.before != nil:
		return v.before.before
	}
	return v
}

// snapshotsOf are the deletions of all snapshots of a blob.
func (s *Store) snapshotsOf(path string) (all []write) {
	for p := range maps.Keys(s.primary) {
		if strings.HasPrefix(p, path+snapshotMark) && !s.Faults.KeepSnapshots {
			all = append(all, write{path: p})
		}
	}
	slices.SortFunc(all, func(a, b write) int { return cmp.Compare(a.path, b.path) })
	return all
}

// writeSnapshot takes a snapshot of a blob or deletes one.
func (s *Store) writeSnapshot(w http.ResponseWriter, r *http.Request, path string) {
	if r.Method == http.MethodDelete {
		path += snapshotMark + r.URL.Query().Get("snapshot")
		if s.primary[path] == nil {
			fail(w, storageerr.BlobNotFound)
			return
		}
		s.tick()
		if !s.Faults.KeepSnapshots {
			s.commit(write{path: path})
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	v := s.primary[path]
	if v == nil {
		fail(w, storageerr.BlobNotFound)
		return
	}
	id := s.tick().Time().UTC().Format("2006-01-02T15:04:05.0000000Z07:00")
	s.commit(write{path: path + snapshotMark + id, v: v})
	w.Header().Set("x-ms-snapshot", id)
	w.Header().Set("ETag", v.etag)
	w.WriteHeader(http.StatusCreated)
}
