package fake

import (
	"net/http"
	"slices"
	"strconv"

	"antipode/api/wire"
	"antipode/services/storageerr"
)

// append appends a block to an append blob.
func (s *Store) append(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	old := s.primary[path]
	if old == nil || old.appended == nil {
		fail(w, storageerr.BlobNotFound)
		return
	}
	offset, n := len(old.blob), len(old.appended)
	if at := r.Header.Get("x-ms-blob-condition-appendpos"); at != "" && at != strconv.Itoa(offset) && !s.Faults.IgnorePositions {
		fail(w, storageerr.AppendPositionNotMet)
		return
	}
	v := &value{
		blob: append(old.blob, body...), appended: append(old.appended, len(body)),
		metadata: map[string]string{}, etag: wire.BlobETag(s.tick()),
	}
	switch {
	case s.Faults.AppendTwice && n%10 == 9:
		v.blob, v.appended = append(v.blob, body...), append(v.appended, len(body))
	case s.Faults.SwapAppends && n%10 == 9:
		last := offset - old.appended[n-1]
		v.blob = slices.Concat(old.blob[:last], body, old.blob[last:])
	}
	s.commit(write{path: path, v: v})
	if s.Faults.WrongOffset {
		offset += len(body)
	}
	if s.Faults.WrongCount {
		n--
	}
	w.Header().Set("ETag", v.etag)
	w.Header().Set("x-ms-blob-append-offset", strconv.Itoa(offset))
	w.Header().Set("x-ms-blob-committed-block-count", strconv.Itoa(n+1))
	w.WriteHeader(http.StatusCreated)
}

// withoutAppends leaves the tenth block out of append blobs at the secondary.
func (s *Store) withoutAppends(writes []write) (out []write) {
	for _, w := range writes {
		if v := w.v; v != nil && len(v.appended) >= 10 {
			from := 0
			for _, n := range v.appended[:9] {
				from += n
			}
			without := *v
			without.blob = slices.Delete(slices.Clone(v.blob), from, from+v.appended[9])
			w.v = &without
		}
		out = append(out, w)
	}
	return out
}
