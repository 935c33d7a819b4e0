package fake

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"antipode/api/wire"
	"antipode/services/storageerr"
)

// readTable answers a point read, or a page of a query.
func (s *Store) readTable(w http.ResponseWriter, path string, q url.Values, secondary bool) {
	if table, isQuery := strings.CutSuffix(path, "()"); isQuery {
		s.query(w, table, q, secondary)
		return
	}
	v := s.at(secondary)[path]
	if v == nil {
		fail(w, storageerr.ResourceNotFound)
		return
	}
	w.Header().Set("ETag", s.tag(v, secondary))
	_ = json.NewEncoder(w).Encode(v.entity)
}

// The filters that are understood: a partition, and perhaps a range of row keys.
var (
	partitionFilter = regexp.MustCompile(`^PartitionKey eq '([^']*)'`)
	rowFilter       = regexp.MustCompile(`RowKey ge '([^']*)' and RowKey lt '([^']*)'$`)
)

func (s *Store) query(w http.ResponseWriter, table string, q url.Values, secondary bool) {
	m := s.at(secondary)
	prefix := table + "(PartitionKey='" + partitionFilter.FindStringSubmatch(q.Get("$filter"))[1] + "',RowKey='"
	from, to := "", "\xff"
	if rows := rowFilter.FindStringSubmatch(q.Get("$filter")); rows != nil {
		from, to = rows[1], rows[2]
	}
	from = max(from, q.Get("NextRowKey"))
	top, err := strconv.Atoi(q.Get("$top"))
	if err != nil {
		top = 1000
	}
	page := []map[string]any{}
	for _, path := range slices.Sorted(maps.Keys(m)) {
		row, ours := strings.CutPrefix(strings.TrimSuffix(path, "')"), prefix)
		if !ours || row < from || row >= to {
			continue
		}
		if len(page) == top {
			w.Header().Set("x-ms-continuation-NextPartitionKey", "p")
			w.Header().Set("x-ms-continuation-NextRowKey", row)
			break
		}
		e := maps.Clone(m[path].entity)
		e["odata.etag"] = s.tag(m[path], secondary)
		page = append(page, e)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"value": page})
}

// writeEntity commits one write of an entity.
func (s *Store) writeEntity(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	s.tick()
	c, failed := s.entityWrite(r, path, body)
	if failed.Status != 0 {
		fail(w, failed)
		return
	}
	s.commit(c)
	if c.v != nil {
		w.Header().Set("ETag", c.v.etag)
	}
	w.WriteHeader(http.StatusNoContent)
}

// entityWrite evaluates a write over what is there now. It fails if the row has a
// status.
func (s *Store) entityWrite(r *http.Request, path string, body []byte) (write, storageerr.Row) {
	c := write{path: path}
	if r.Method != http.MethodDelete {
		c.v = &value{entity: map[string]any{}, etag: wire.TableETag(s.last)}
		if old := s.primary[path]; r.Method == "MERGE" && old != nil {
			c.v.entity = maps.Clone(old.entity)
		}
		if err := json.Unmarshal(body, &c.v.entity); err != nil {
			return c, storageerr.InvalidInput
		}
		c.path = fmt.Sprintf("%s(PartitionKey='%s',RowKey='%s')", strings.SplitN(path, "(", 2)[0], c.v.entity["PartitionKey"], c.v.entity["RowKey"])
	}
	old := s.primary[c.path]
	match := r.Header.Get("If-Match")
	switch {
	case r.Method == http.MethodPost && old != nil:
		return c, storageerr.EntityAlreadyExists
	case old == nil && (match != "" || r.Method == http.MethodDelete):
		return c, storageerr.ResourceNotFound
	case match != "" && match != "*" && match != old.etag && !s.Faults.IgnoreConditions:
		return c, storageerr.UpdateConditionNotMet
	}
	return c, storageerr.Row{}
}

// batch commits the writes of a change set as one change. No two are of one entity.
func (s *Store) batch(w http.ResponseWriter, r *http.Request, body []byte) {
	requests, err := changeset(r.Header.Get("Content-Type"), body)
	if err != nil {
		fail(w, storageerr.InvalidInput)
		return
	}
	s.tick()
	var writes []write
	var out bytes.Buffer
	out.WriteString("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n")
	for _, in := range requests {
		_, path, _ := strings.Cut(strings.TrimPrefix(in.URL.Path, "/"), "/")
		body, _ := io.ReadAll(in.Body)
		c, failed := s.entityWrite(in, path, body)
		if failed.Status != 0 {
			writes = nil
			out.Reset()
			fmt.Fprintf(&out, "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 %d Failed\r\nx-ms-error-code: %s\r\n\r\n\r\n", failed.Status, failed.Code)
			break
		}
		writes = append(writes, c)
		out.WriteString("--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 204 No Content\r\n")
		if c.v != nil {
			out.WriteString("ETag: " + c.v.etag + "\r\n")
		}
		out.WriteString("\r\n\r\n")
	}
	if len(writes) > 0 {
		s.commit(writes...)
	}
	out.WriteString("--c--\r\n--b--\r\n")
	w.Header().Set("Content-Type", "multipart/mixed; boundary=b")
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(out.Bytes())
}

// changeset takes a batch of one change set apart.
func changeset(contentType string, body []byte) ([]*http.Request, error) {
	_, outer, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, err
	}
	set, err := multipart.NewReader(bytes.NewReader(body), outer["boundary"]).NextPart()
	if err != nil {
		return nil, err
	}
	_, inner, err := mime.ParseMediaType(set.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	var out []*http.Request
	for parts := multipart.NewReader(set, inner["boundary"]); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(content)))
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
}
