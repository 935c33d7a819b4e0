package fake

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"antipode/api/wire"
	"antipode/services/storageerr"
)

// block is one block of a blob; id is in Base64, as it was sent.
type block struct {
	id   string
	body []byte
}

// readBlobs answers a blob, its block list or a page of a listing.
func (s *Store) readBlobs(w http.ResponseWriter, path string, q url.Values, secondary bool) {
	v := s.snapshotAt(path, q.Get("snapshot"), secondary)
	uncommitted := s.uncommitted[path]
	switch q.Get("comp") {
	case "list":
		s.list(w, path, q, secondary)
		return
	case "blocklist":
		if v != nil {
			w.Header().Set("ETag", s.tag(v, secondary))
			writeBlockLists(w, v.blocks, uncommitted)
		} else if len(uncommitted) > 0 && !secondary {
			writeBlockLists(w, nil, uncommitted)
		} else {
			fail(w, storageerr.BlobNotFound)
		}
		return
	}
	if v == nil {
		fail(w, storageerr.BlobNotFound)
		return
	}
	w.Header().Set("ETag", s.tag(v, secondary))
	v.copied.write(w.Header())
	for name, value := range v.metadata {
		w.Header().Set("x-ms-meta-"+name, value)
	}
	_, _ = w.Write(v.blob)
	for _, b := range uncommitted {
		if s.Faults.ShowUncommitted {
			_, _ = w.Write(b.body)
		}
	}
}

func writeBlockLists(w http.ResponseWriter, committed, uncommitted []block) {
	entries := func(blocks []block) string {
		var out strings.Builder
		for _, b := range blocks {
			fmt.Fprintf(&out, "<Block><Name>%s</Name><Size>%d</Size></Block>", b.id, len(b.body))
		}
		return out.String()
	}
	_, _ = fmt.Fprintf(w, "<BlockList><CommittedBlocks>%s</CommittedBlocks><UncommittedBlocks>%s</UncommittedBlocks></BlockList>",
		entries(committed), entries(uncommitted))
}

// list answers one page of a listing; its marker is the name or prefix that begins the
// next one.
func (s *Store) list(w http.ResponseWriter, container string, q url.Values, secondary bool) {
	m := s.at(secondary)
	if s.Faults.ListDeleted {
		m = maps.Clone(s.deleted)
		maps.Copy(m, s.at(secondary))
	}
	top, err := strconv.Atoi(q.Get("maxresults"))
	if err != nil {
		top = 5000
	}
	prefix, delimiter := q.Get("prefix"), q.Get("delimiter")
	var out strings.Builder
	entries, blobs, last, next := 0, 0, "", ""
	snapshots := strings.Contains(q.Get("include"), "snapshots") && !s.Faults.HideSnapshots
	for _, path := range slices.SortedFunc(maps.Keys(m), inListing) {
		name, ours := strings.CutPrefix(path, container+"/")
		name, snapshot, taken := strings.Cut(name, snapshotMark)
		if !ours || !strings.HasPrefix(name, prefix) || taken && !snapshots {
			continue
		}
		entry := name
		if snapshots {
			entry = listingKey(path)
		}
		head, _, folder := strings.Cut(name[len(prefix):], delimiter)
		if folder = folder && delimiter != ""; folder {
			entry = prefix + head + delimiter
		}
		blobs++
		if n := s.Faults.ListMisses; entry == last || entry < q.Get("marker") || !folder && n > 0 && blobs%n == 0 {
			continue
		}
		if entries == top {
			next = entry
			break
		}
		entries++
		last = entry
		if folder {
			fmt.Fprintf(&out, "<BlobPrefix><Name>%s</Name></BlobPrefix>", entry)
			continue
		}
		v := m[path]
		fmt.Fprintf(&out, "<Blob><Name>%s</Name><Snapshot>%s</Snapshot><Properties><Etag>%s</Etag><Content-Length>%d</Content-Length></Properties><Metadata>",
			name, snapshot, strings.Trim(s.tag(v, secondary), `"`), len(v.blob))
		for k, value := range v.metadata {
			fmt.Fprintf(&out, "<%s>%s</%s>", k, value, k)
		}
		out.WriteString("</Metadata></Blob>")
	}
	_, _ = fmt.Fprintf(w, "<EnumerationResults><Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>", out.String(), next)
}

// writeBlob puts a blob, its metadata, a block or a block list, or deletes the blob.
func (s *Store) writeBlob(w http.ResponseWriter, r *http.Request, path, comp string, body []byte) {
	if comp == "block" {
		b := block{id: r.URL.Query().Get("blockid"), body: body}
		s.uncommitted[path] = slices.DeleteFunc(s.uncommitted[path], func(old block) bool { return old.id == b.id })
		s.uncommitted[path] = append(s.uncommitted[path], b)
		w.WriteHeader(http.StatusCreated)
		return
	}
	old := s.primary[path]
	match := r.Header.Get("If-Match")
	switch {
	case comp == "appendblock":
		s.append(w, r, path, body)
		return
	case comp == "snapshot" || r.URL.Query().Has("snapshot"):
		s.writeSnapshot(w, r, path)
		return
	case r.Header.Get(headerCopySource) != "":
		s.copyBlob(w, r, path)
		return
	case s.Faults.IgnoreConditions:
	case old != nil && r.Header.Get("If-None-Match") == "*":
		fail(w, storageerr.BlobAlreadyExists)
		return
	case match != "" && (old == nil || match != "*" && match != old.etag):
		fail(w, storageerr.ConditionNotMet)
		return
	}
	if old == nil && (r.Method == http.MethodDelete || comp == "metadata") {
		fail(w, storageerr.BlobNotFound)
		return
	}
	c := write{path: path}
	if r.Method != http.MethodDelete {
		c.v = &value{blob: body, metadata: map[string]string{}, etag: wire.BlobETag(s.tick()), before: old}
		if r.Header.Get("x-ms-blob-type") == "AppendBlob" {
			c.v.appended = []int{}
		}
		for name, values := range r.Header {
			if name, found := strings.CutPrefix(name, "X-Ms-Meta-"); found {
				c.v.metadata[strings.ToLower(name)] = values[0]
			}
		}
	}
	switch comp {
	case "metadata":
		c.v.blob, c.v.blocks = old.blob, old.blocks
	case "blocklist":
		if !s.compose(c.v, path, body) {
			fail(w, storageerr.InvalidBlockList)
			return
		}
		delete(s.uncommitted, path)
	default:
		delete(s.uncommitted, path)
	}
	if c.v == nil && old.copied.id != "" && s.Faults.KeepCopied {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if c.v == nil {
		s.tick()
		s.commit(append(s.snapshotsOf(path), c)...)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("ETag", c.v.etag)
	s.commit(c)
	w.WriteHeader(http.StatusCreated)
}

// compose makes v the blocks that a list names.
func (s *Store) compose(v *value, path string, body []byte) bool {
	var list struct {
		Blocks []struct {
			XMLName xml.Name
			ID      string `xml:",chardata"`
		} `xml:",any"`
	}
	if err := xml.Unmarshal(body, &list); err != nil {
		return false
	}
	v.blob = nil
	for _, named := range list.Blocks {
		var from []block
		if named.XMLName.Local != "Committed" {
			from = s.uncommitted[path]
		}
		if old := s.primary[path]; old != nil && named.XMLName.Local != "Uncommitted" {
			from = append(slices.Clip(from), old.blocks...)
		}
		i := slices.IndexFunc(from, func(b block) bool { return b.id == named.ID })
		if i < 0 {
			return false
		}
		v.blocks = append(v.blocks, from[i])
		v.blob = append(v.blob, from[i].body...)
	}
	return true
}
