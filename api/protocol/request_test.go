package protocol

import (
	"net/http"
	"testing"
	"time"

	"antipode/geo"
)

func BenchmarkRequest(b *testing.B) {
	r := &http.Request{Host: "127.0.0.1:10002", RequestURI: "/devstoreaccount1/T(PartitionKey='p',RowKey='r')?timeout=30", Header: http.Header{}}
	ids, now := NewRequestIDs([32]byte{1}), time.Date(2026, 10, 1, 15, 27, 34, 0, time.UTC)
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		t, _ := ParseTarget(geo.Table, "http", r.Host, r.RequestURI)
		_, _ = ParseQuery(t.RawQuery)
		v, _ := ServiceVersion(t.Service, "2019-02-02", true)
		SetCommonHeaders(h, r, t.Service, v, ids.Next(), now)
	}
}
