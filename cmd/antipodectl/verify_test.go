package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// verifyDocument is a comparison that found differences, and could not compare one lane.
func verifyDocument() admin.Verify {
	return admin.Verify{
		Account: "pictures", Primary: "southcentralus", Secondary: "northcentralus", State: admin.VerifyDone, Outcome: admin.VerifyDifferent,
		Ranges: []admin.VerifiedRange{
			{Range: 1, Service: "catalog", Done: true, Round: 1, Lanes: 32, Compared: 32, Rows: 2, Bytes: 300},
			{
				Range: 2, Service: "blob", Done: true, Round: 8, Lanes: 32, Compared: 31, Rows: 1000, Bytes: 1 << 20, Chunks: 900, ChunkBytes: 3 << 30,
				NotCompared: []admin.LaneNotCompared{{Lane: 17, Reason: "moved: the secondary was at #41, the head at #42"}},
			},
		},
		Differences: []admin.VerifyDifference{
			{Kind: "different", Service: "blob", Container: "photos", Object: "2026/cat.jpg", Row: "blob"},
			{Kind: "payload missing", Service: "blob", Container: "photos", Object: "a\tb", Row: "blob", Chunk: "00c0ffee00c0ffee", Reason: "missing"},
		},
		DifferencesTotal: 2, BytesCrossed: 3456,
	}
}

// verify waits for the end of a comparison, shows how far it is, and its exit code is the result.
func TestVerifyWaits(t *testing.T) {
	for outcome, code := range map[string]int{admin.VerifyEqual: 0, admin.VerifyDifferent: 1, admin.VerifyIncomplete: 2} {
		looks := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v := admin.Verify{Account: "pictures", State: admin.VerifyRunning, Ranges: []admin.VerifiedRange{
				{Service: "catalog", Done: true, BytesRead: 1 << 20}, {Service: "blob", Round: 2, Lanes: 32, Compared: 30, BytesRead: 2 << 20},
			}}
			if r.Method == http.MethodGet {
				looks++
			}
			if looks == 3 {
				v.State, v.Outcome = admin.VerifyDone, outcome
			}
			_ = json.NewEncoder(w).Encode(v)
		}))
		var out, errOut bytes.Buffer
		tool := newTool(func(name string) string {
			return map[string]string{adminEnv: srv.URL, tokenEnv: "antipode-admin-" + string(bytes.Repeat([]byte("0"), 64))}[name]
		}, &out, &errOut)
		now := time.Duration(0)
		tool.mono = func() time.Duration { now += verifyShow; return now }
		tool.after = func(time.Duration) <-chan time.Time {
			c := make(chan time.Time, 1)
			c <- time.Time{}
			return c
		}
		require.Equal(t, code, tool.run(t.Context(), []string{"verify", "pictures"}), errOut.String())
		require.Equal(t, 3, looks)
		require.Contains(t, errOut.String(), "pictures: 1 of 2 ranges, 3.0 MiB read; blob range: round 2, 30 of 32 lanes\n")
		srv.Close()
	}
}
