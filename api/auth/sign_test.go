package auth

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
)

// What Sign signs arrives at a real HTTP server as a request that Verify accepts,
// for every service and scheme, also where Go's client adds its headers.
func TestSignOverTheWire(t *testing.T) {
	key := testKey(t)
	v := &Verifier{Clock: clock.NewManual(testNow), FutureSkew: DateWindow}
	service := geo.Blob
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := verify(v, r, service, Keys{Key1: key}); err != nil {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(err.Error()))
		}
	}))
	defer server.Close()
	tests := []struct{ method, path, body, version string }{
		{"GET", "/devstoreaccount1?comp=list", "", "2024-08-04"},
		{"PUT", "/devstoreaccount1/c/a%2Fb%20c", "", "2024-08-04"},
		{"PUT", "/devstoreaccount1/c/a//b/../c", "hello", "2024-08-04"},
		{"PUT", "/devstoreaccount1/q?x=%C3%A4+b&y", "", "2014-02-14"},
		{"POST", "/devstoreaccount1/T(PartitionKey='a',RowKey='%27%27')", "{}", "2019-02-02"},
		{"MERGE", "/devstoreaccount1-secondary/T", "{}", "2009-07-17"},
		{"DELETE", "/devstoreaccount1/q", "", ""},
	}
	for _, service = range geo.Services {
		for _, sign := range []func(*http.Request, geo.Service, geo.Account, []byte, time.Time) error{Sign, SignSharedKeyLite} {
			for _, tt := range tests {
				r, err := http.NewRequest(tt.method, server.URL+tt.path, strings.NewReader(tt.body))
				if err != nil {
					t.Fatal(err)
				}
				if tt.version != "" {
					r.Header.Set("x-ms-version", tt.version)
				}
				if err := sign(r, service, testAccount, key, testNow); err != nil {
					t.Fatal(err)
				}
				answer, err := server.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Errorf("%s %s %s: %s", service, tt.method, tt.path, answer.Status)
				}
			}
		}
	}
}

// A query that cannot be parsed cannot be signed.
func TestSignBadQuery(t *testing.T) {
	r := httptest.NewRequest("GET", "http://x/", nil)
	r.URL.RawQuery = "a=%zz"
	if err := Sign(r, geo.Blob, testAccount, testKey(t), testNow); err == nil {
		t.Error("signed a query with bad percent-encoding")
	}
}
