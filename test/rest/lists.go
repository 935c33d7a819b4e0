package rest

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"antipode/geo"
)

// BlobListing says which blobs to list. The zero value lists all.
type BlobListing struct {
	Prefix, Delimiter string
	// Max bounds the blobs and prefixes of a page. Zero leaves it to the server.
	Max int
	// Marker is where the page begins: the NextMarker of the one before.
	Marker string
	// Snapshots lists the snapshots of each blob before it.
	Snapshots bool
}

// BlobItem is one blob of a listing, or one snapshot.
type BlobItem struct {
	Name string
	// Snapshot is the id of a snapshot, "" for a blob.
	Snapshot string
	// ETag is as the headers have it, in quotes.
	ETag     string
	Length   int64
	Metadata map[string]string
}

// BlobPage is one page of a listing.
type BlobPage struct {
	Blobs      []BlobItem
	Prefixes   []string
	NextMarker string
}

// xmlBlobPage is a page as it is sent.
type xmlBlobPage struct {
	XMLName xml.Name `xml:"EnumerationResults"`
	Blobs   []struct {
		Name       string
		Snapshot   string
		Properties struct {
			Etag          string
			ContentLength int64 `xml:"Content-Length"`
		}
		Metadata struct {
			Items []struct {
				XMLName xml.Name
				Value   string `xml:",chardata"`
			} `xml:",any"`
		}
	} `xml:"Blobs>Blob"`
	Prefixes   []string `xml:"Blobs>BlobPrefix>Name"`
	NextMarker string
}

// ListBlobs reads one page of a container with the metadata of each blob; it is
// empty unless the status is 200.
func (c *Client) ListBlobs(ctx context.Context, container string, in BlobListing) (BlobPage, Answer, error) {
	q := url.Values{"restype": {"container"}, "comp": {"list"}, "include": {"metadata"}}
	for name, value := range map[string]string{"prefix": in.Prefix, "delimiter": in.Delimiter, "marker": in.Marker} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if in.Snapshots {
		q.Set("include", "metadata,snapshots")
	}
	if in.Max != 0 {
		q.Set("maxresults", strconv.Itoa(in.Max))
	}
	a, err := c.Do(ctx, geo.Blob, Request{Method: http.MethodGet, Path: "/" + container, Query: q.Encode()})
	if err != nil || a.Status != http.StatusOK {
		return BlobPage{}, a, err
	}
	var doc xmlBlobPage
	if err := xml.Unmarshal(a.Body, &doc); err != nil {
		return BlobPage{}, a, fmt.Errorf("rest: blobs of %s: %w in %.200q", container, err, a.Body)
	}
	out := BlobPage{Prefixes: doc.Prefixes, NextMarker: doc.NextMarker}
	for _, b := range doc.Blobs {
		item := BlobItem{
			Name: b.Name, Snapshot: b.Snapshot, ETag: strconv.Quote(b.Properties.Etag), Length: b.Properties.ContentLength,
			Metadata: map[string]string{},
		}
		for _, m := range b.Metadata.Items {
			item.Metadata[strings.ToLower(m.XMLName.Local)] = m.Value
		}
		out.Blobs = append(out.Blobs, item)
	}
	return out, a, nil
}

// Continuation is where a page of a query begins; the zero value is the start.
type Continuation struct{ PartitionKey, RowKey string }

// Query is one request of a query of entities.
type Query struct {
	Filter string
	// Top bounds the entities of a page. Zero leaves it to the server.
	Top  int
	From Continuation
}

// EntityPage is one page of a query. Each entity has its tag under ETagProperty.
type EntityPage struct {
	Entities []Entity
	// Next is zero after the last page.
	Next Continuation
}

// ETagProperty is the property under which a query gives an entity's tag.
const ETagProperty = "odata.etag"

// Query reads one page of a table; it is empty unless the status is 200.
func (c *Client) Query(ctx context.Context, table string, in Query) (EntityPage, Answer, error) {
	q := url.Values{"$filter": {in.Filter}}
	if in.Top != 0 {
		q.Set("$top", strconv.Itoa(in.Top))
	}
	if in.From.PartitionKey != "" {
		q.Set("NextPartitionKey", in.From.PartitionKey)
	}
	if in.From.RowKey != "" {
		q.Set("NextRowKey", in.From.RowKey)
	}
	a, err := c.Do(ctx, geo.Table, Request{
		Method: http.MethodGet, Path: "/" + table + "()", Query: q.Encode(),
		Header: map[string]string{"Accept": "application/json;odata=minimalmetadata"},
	})
	if err != nil || a.Status != http.StatusOK {
		return EntityPage{}, a, err
	}
	var doc struct{ Value []Entity }
	if err := json.Unmarshal(a.Body, &doc); err != nil {
		return EntityPage{}, a, fmt.Errorf("rest: query of %s: %w in %.200q", table, err, a.Body)
	}
	return EntityPage{Entities: doc.Value, Next: Continuation{
		PartitionKey: a.Header.Get("x-ms-continuation-NextPartitionKey"),
		RowKey:       a.Header.Get("x-ms-continuation-NextRowKey"),
	}}, a, nil
}
