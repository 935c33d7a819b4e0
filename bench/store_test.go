package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"antipode/api/protocol"
	apitables "antipode/api/tables"
	"antipode/api/tables/filter"
	"antipode/api/tables/json"
	"antipode/api/tables/odata"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/test/fake"
)

// store adds to fake.Store what it lacks: entity group transactions, queries by keys
// and listings of blobs. Transactions are read by the package that reads them in the
// server, so the form that the generator writes is held to it.
type store struct {
	*fake.Store

	mu    sync.Mutex
	sets  []transaction
	blobs []string
}

type transaction struct {
	writes  []*tables.Write
	arrives time.Time
	// skipped means that it never arrives at the secondary, and torn that its last
	// entity does not.
	skipped, torn bool
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case strings.HasSuffix(r.URL.Path, "/$batch"):
		s.commit(w, r)
	case query.Has("$filter"):
		s.query(w, query, strings.Contains(r.URL.Path, "-secondary/"))
	case query.Get("comp") == "list":
		s.list(w, query.Get("marker"))
	default:
		if r.Method == http.MethodPut && !query.Has("restype") {
			s.mu.Lock()
			s.blobs = append(s.blobs, strings.SplitN(r.URL.Path, "/", 4)[3])
			s.mu.Unlock()
		}
		s.Store.ServeHTTP(w, r)
	}
}

func (s *store) commit(w http.ResponseWriter, r *http.Request) {
	writes, err := readBatch(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	t := transaction{writes: writes, arrives: s.Clock.Now().Add(s.Delay)}
	t.skipped = s.Faults.SkipAtSecondary > 0 && len(s.sets)%s.Faults.SkipAtSecondary == 0
	t.torn = s.Faults.Tear && len(s.sets)%5 == 0
	s.sets = append(s.sets, t)
	s.mu.Unlock()
	a := apitables.NewBatchAnswer("1")
	a.OpenSet()
	for range writes {
		a.Part(http.StatusNoContent, "", []apitables.Field{{Name: "DataServiceVersion", Value: "3.0;"}}, nil)
	}
	a.CloseSet()
	w.Header().Set("Content-Type", a.ContentType())
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(a.Close())
}

// readBatch reads one change set of inserts.
func readBatch(r *http.Request) ([]*tables.Write, error) {
	boundary, err := wire.BatchBoundary(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	parts := wire.NewBatchReader(r.Body, boundary)
	var b tables.Batch
	for {
		part, err := parts.Next()
		switch {
		case errors.Is(err, io.EOF):
			return b.Writes(), nil
		case err != nil:
			return nil, err
		case part.ChangeSet != 1 || part.Method != http.MethodPost:
			return nil, fmt.Errorf("%s %s in change set %d", part.Method, part.URI, part.ChangeSet)
		}
		_, path, _ := wire.CutBatchURI(part.URI)
		path = strings.TrimPrefix(path, "devstoreaccount1/")
		in, err := json.NoMetadata.DecodeEntity(part.Body, odata.Insert)
		if err != nil {
			return nil, err
		}
		if err := b.Add(&tables.Write{Op: tables.Insert, Table: path, PK: in.PK, RK: in.RK, Props: in.Props}); err != nil {
			return nil, err
		}
	}
}

// searchedRows is how many entities a page of the store looks at, for a query without keys.
const searchedRows = 1500

// query answers a query of one partition by one page, and one without keys by as many as it takes.
func (s *store) query(w http.ResponseWriter, query url.Values, secondary bool) {
	text := query.Get("$filter")
	keys := strings.Contains(text, entity.PartitionKey)
	wanted, err := filter.Parse(protocol.Newest, text)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	var rows []tables.Entity
	for _, t := range s.sets {
		if keys && !strings.Contains(text, "'"+t.writes[0].PK+"'") || secondary && (t.skipped || s.Clock.Now().Before(t.arrives)) {
			continue
		}
		for i, e := range t.writes {
			if !secondary || !t.torn || i < len(t.writes)-1 {
				rows = append(rows, tables.Entity{PK: e.PK, RK: e.RK, Timestamp: geo.TimestampOf(s.Clock.Now()), Props: e.Props})
			}
		}
	}
	s.mu.Unlock()
	slices.SortFunc(rows, func(a, b tables.Entity) int { return cmp.Or(strings.Compare(a.PK, b.PK), strings.Compare(a.RK, b.RK)) })
	from, to := 0, len(rows)
	if !keys {
		from, _ = strconv.Atoi(query.Get("NextRowKey"))
		to = min(from+searchedRows, len(rows))
	}
	if to < len(rows) {
		w.Header().Set("x-ms-continuation-NextPartitionKey", "+ &")
		w.Header().Set("x-ms-continuation-NextRowKey", strconv.Itoa(to))
	}
	set, found := &odata.Set{}, 0
	doc := json.NoMetadata.AppendFeedStart(nil, set)
	for _, e := range rows[from:to] {
		if ok, _, err := wanted.Matcher().Match(&e); err != nil || !ok {
			continue
		}
		if doc, err = json.NoMetadata.AppendEntity(doc, set, odata.InFeed(found), e); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		found++
	}
	_, _ = w.Write(json.NoMetadata.AppendFeedEnd(doc, 0))
}

// list has the number of the next name for a marker.
func (s *store) list(w http.ResponseWriter, marker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.blobs)
	from, _ := strconv.Atoi(marker)
	_, _ = w.Write(listing(s.blobs, from))
}

// listing is the page of names that begins with that of number from.
func listing(names []string, from int) []byte {
	var doc bytes.Buffer
	doc.WriteString(`<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="c"><Blobs>`)
	to := min(from+scanItems, len(names))
	for _, name := range names[from:to] {
		doc.WriteString("<Blob><Name>" + name + "</Name><Properties><Etag>0x8</Etag></Properties></Blob>")
	}
	next := ""
	if to < len(names) {
		next = strconv.Itoa(to)
	}
	doc.WriteString("</Blobs><NextMarker>" + next + "</NextMarker></EnumerationResults>")
	return doc.Bytes()
}
