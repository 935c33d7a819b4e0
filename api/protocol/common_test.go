package protocol

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"antipode/geo"
)

// Request ids have GUID form and do not repeat, also from many goroutines; the
// same seed gives the same ids.
func TestRequestIDs(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	ids := NewRequestIDs([32]byte{7})
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				id := ids.Next()
				mu.Lock()
				if !form.MatchString(id) || seen[id] {
					t.Errorf("%q repeats or is no GUID", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if a, b := NewRequestIDs([32]byte{9}).Next(), NewRequestIDs([32]byte{9}).Next(); a != b {
		t.Errorf("one seed, two ids: %s, %s", a, b)
	}
}

// Every answer carries the common headers; the version only where clients expect
// it, the client's id only where it can be echoed as it is.
func TestSetCommonHeaders(t *testing.T) {
	now := time.Date(2026, 2, 3, 16, 46, 54, 604068500, time.UTC)
	tests := []struct {
		name     string
		service  geo.Service
		version  Version
		clientID []string
		want     http.Header
	}{
		{"blob", geo.Blob, "2024-08-04", []string{"My Id~1"}, http.Header{
			"X-Ms-Version": {"2024-08-04"}, "X-Ms-Client-Request-Id": {"My Id~1"}, "Server": {"Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"},
		}},
		{"old table", geo.Table, "2009-04-14", nil, http.Header{"Server": {"Table Service Version 1.0 Microsoft-HTTPAPI/2.0"}}},
		{"table of 2009", geo.Table, "2009-09-19", nil, http.Header{
			"X-Ms-Version": {"2009-09-19"}, "Server": {"Table Service Version 1.0 Microsoft-HTTPAPI/2.0"},
		}},
		{"table", geo.Table, "2011-08-18", nil, http.Header{"X-Ms-Version": {"2011-08-18"}, "Server": {"Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"}}},
		{"unknown version", geo.Queue, Preview, []string{""}, http.Header{"Server": {"Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0"}}},
		{"longest id", geo.Queue, Preview, []string{strings.Repeat("a", 1024)}, http.Header{"X-Ms-Client-Request-Id": {strings.Repeat("a", 1024)}}},
		{"id too long", geo.Queue, Preview, []string{strings.Repeat("a", 1025)}, nil},
		{"id not ASCII", geo.Queue, Preview, []string{"ä"}, nil},
		{"id with a tab", geo.Queue, Preview, []string{"a\tb"}, nil},
		{"two ids", geo.Queue, Preview, []string{"a", "b"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &http.Request{Header: http.Header{"X-Ms-Client-Request-Id": tt.clientID}}
			h := http.Header{}
			SetCommonHeaders(h, r, tt.service, tt.version, "id-1", now)
			if h.Get("x-ms-request-id") != "id-1" || h.Get("Date") != "Tue, 03 Feb 2026 16:46:54 GMT" {
				t.Errorf("headers %v", h)
			}
			for name, values := range tt.want {
				if h.Get(name) != values[0] {
					t.Errorf("%s: %q, want %q", name, h.Get(name), values[0])
				}
			}
			for _, name := range []string{"X-Ms-Version", "X-Ms-Client-Request-Id"} {
				if _, set := h[name]; set && tt.want[name] == nil {
					t.Errorf("%s is set", name)
				}
			}
			h.Add("Date", "x")
			if h.Get("Server") == "x" {
				t.Error("an added value overwrote a neighbour")
			}
		})
	}
}
