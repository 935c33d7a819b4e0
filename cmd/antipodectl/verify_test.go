package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
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
	codes := map[string]command.Code{admin.VerifyEqual: 0, admin.VerifyRepaired: 0, admin.VerifyDifferent: 1, admin.VerifyIncomplete: 3}
	for outcome, code := range codes {
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

// verify --repair asks for a repair, shows how far it is and what it did to each row; --dry-run asks for none.
func TestVerifyRepair(t *testing.T) {
	var asked []admin.VerifyQuery
	doc := verifyDocument()
	doc.Outcome, doc.Differences[0].Repair, doc.Differences[1].Repair = admin.VerifyRepaired, "set", "not repaired: damaged"
	doc.Repaired = &admin.VerifyRepair{Set: 1, Deleted: 2, Gone: 3, NotRepaired: 4, Bytes: 5 << 20}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q admin.VerifyQuery
		require.NoError(t, json.NewDecoder(r.Body).Decode(&q))
		asked = append(asked, q)
		_ = json.NewEncoder(w).Encode(doc)
	}))
	defer srv.Close()
	run := func(args ...string) (code command.Code, out, errOut string) {
		var o, e bytes.Buffer
		tool := newTool(func(name string) string {
			return map[string]string{adminEnv: srv.URL, tokenEnv: "antipode-admin-" + string(bytes.Repeat([]byte("0"), 64))}[name]
		}, &o, &e)
		return tool.run(t.Context(), append([]string{"verify", "pictures"}, args...)), o.String(), e.String()
	}
	code, out, _ := run("--repair", "--payload", "--repair-rate", "77")
	require.Zero(t, code)
	require.Equal(t, []admin.VerifyQuery{{Payload: true, Repair: true, RepairBytesPerSecond: 77}}, asked)
	require.Contains(t, out, "result   equal again: 2 differences repaired\n")
	require.Contains(t, out, "repaired 1 row set, 2 deleted, 5.0 MiB sent, 3 deleted meanwhile with their containers, 4 not repaired\n")
	require.Regexp(t, `(?m)^different +blob +photos .* set$`, out)
	require.Regexp(t, `(?m)^payload missing .* not repaired: damaged$`, out)

	doc.Outcome, doc.Repaired.Remaining = admin.VerifyDifferent, 1
	code, out, _ = run("--repair")
	require.Equal(t, command.Failed, code)
	require.Contains(t, out, "result   different: 2 differences found, of which 1 left\n")

	asked = nil
	_, _, _ = run("--repair", "--dry-run")
	require.Equal(t, []admin.VerifyQuery{{}}, asked)
	code, _, errOut := run("--dry-run")
	require.Equal(t, command.Usage, code)
	require.Contains(t, errOut, "--dry-run belongs to --repair")
}

// What kept lanes from being compared is one line for each cause.
func TestVerifyHasALineForEachCause(t *testing.T) {
	v := verifyDocument()
	v.Ranges = nil
	for i, service := range []string{"catalog", "blob"} {
		r := admin.VerifiedRange{Range: geo.RangeID(i + 1), Service: service, Lanes: geo.LaneCount}
		for lane := range geo.Lane(geo.LaneCount) {
			reason := "rpc error: code = Unavailable desc = dial tcp 127.0.0.1:4222:\n\tconnection refused"
			if lane > 29 {
				reason = fmt.Sprintf("moved: the secondary was at #%d, the head at #42", lane)
			}
			r.NotCompared = append(r.NotCompared, admin.LaneNotCompared{Lane: lane, Reason: reason})
		}
		v.Ranges = append(v.Ranges, r)
	}
	require.Equal(t, []string{
		"not compared: 60 lanes (catalog, blob), such as r1/l0 (catalog): dial tcp 127.0.0.1:4222: connection refused",
		"not compared: 4 lanes (catalog, blob), such as r1/l30 (catalog): moved: the secondary was at #30, the head at #42",
	}, notCompared(v.Ranges))
}
