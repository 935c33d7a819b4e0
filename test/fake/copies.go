package fake

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"antipode/api/wire"
	"antipode/services/storageerr"
)

const headerCopySource = "x-ms-copy-source"

// copied is what the properties of a copy show.
type copied struct{ id, source string }

func (c copied) write(h http.Header) {
	if c.id != "" {
		h.Set("x-ms-copy-id", c.id)
		h.Set(headerCopySource, c.source)
	}
}

// copyBlob copies the blob that a request names onto a path.
func (s *Store) copyBlob(w http.ResponseWriter, r *http.Request, path string) {
	source := r.Header.Get(headerCopySource)
	u, err := url.Parse(source)
	if err != nil {
		fail(w, storageerr.InvalidInput)
		return
	}
	_, from, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	of := s.primary[from]
	if of == nil {
		fail(w, storageerr.CopySourceRefused(http.StatusNotFound, "", "").Row)
		return
	}
	s.copies++
	if s.Faults.StaleCopies && of.before != nil && of.before.before != nil {
		of = of.before.before
	}
	v := &value{
		blob: of.blob, blocks: of.blocks, metadata: maps.Clone(of.metadata), etag: wire.BlobETag(s.tick()),
		copied: copied{fmt.Sprintf("copy-%d", s.copies), source},
	}
	if s.Faults.PartialCopies && s.copies%5 == 0 && len(v.blocks) > 0 {
		v.blob, v.blocks = v.blob[:len(v.blob)-len(v.blocks[len(v.blocks)-1].body)], v.blocks[:len(v.blocks)-1]
	}
	if !s.Faults.CopiesLost || s.copies%5 != 0 {
		s.commit(write{path: path, v: v})
		delete(s.uncommitted, path)
	}
	w.Header().Set("ETag", v.etag)
	w.Header().Set("x-ms-copy-id", v.copied.id)
	w.Header().Set("x-ms-copy-status", "success")
	w.WriteHeader(http.StatusAccepted)
}

// withoutCopies leaves some copies out at the secondary.
func (s *Store) withoutCopies(writes []write) (out []write) {
	for _, w := range writes {
		if w.v == nil || w.v.copied.id == "" || s.shipped%3 != 0 {
			out = append(out, w)
		}
	}
	return out
}
