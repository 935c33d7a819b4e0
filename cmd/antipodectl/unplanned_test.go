package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// answers are those of an admin port to each look at an unplanned failover of pictures.
func answers(t *testing.T, states ...admin.AccountUpdated) (url string, asked *[]admin.Failover) {
	t.Helper()
	asked = &[]admin.Failover{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(states[0].AccountInfo)
	})
	mux.HandleFunc("POST /v1/accounts/pictures/update", func(w http.ResponseWriter, r *http.Request) {
		var u admin.UpdateAccount
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &u); err != nil || u.Failover == nil {
			http.Error(w, "got "+string(b), http.StatusTeapot)
			return
		}
		_ = json.NewEncoder(w).Encode(states[min(len(*asked), len(states)-1)])
		*asked = append(*asked, *u.Failover)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// unplannedStates are the states of an unplanned failover in their order, with a witness that is slow to answer.
func unplannedStates() (before, claiming, waits, applying, taken, thawing, withdrawing admin.AccountUpdated) {
	at := func(ms int) admin.Time {
		return admin.Time{Time: time.Date(2026, 11, 24, 3, 4, 5, ms*1_000_000+999_999, time.UTC)}
	}
	before.Account = admin.Account{
		Name: "pictures", Redundancy: "RA-GRS", Primary: "northcentralus", Secondary: "southcentralus",
		Epoch: admin.Epoch{Number: 1, Location: "northcentralus"},
	}
	before.Loss = []admin.ServiceLoss{
		{Service: "catalog", LastSyncTime: at(100), UnboundedSince: at(100)},
		{Service: "blob", LastSyncTime: at(70), KnownRecords: 12, UnboundedSince: at(90)},
		{Service: "queue", Reason: "forked", UnboundedSince: at(80)},
		{Service: "table", Reason: "not-heard"},
	}
	claiming, applying, taken, thawing, withdrawing = before, before, before, before, before
	claiming.FailoverPhase = admin.FailoverClaiming
	claiming.Operation = "an unplanned failover to this location: it waits for the witness, and for the lease of the present primary to end"
	waits = claiming
	waits.OperationWaits = "witness: connection refused"
	applying.FailoverPhase = admin.FailoverApplying
	applying.Operation = "an unplanned failover to this location: it applies what has arrived"
	taken.Primary, taken.Secondary, taken.Epoch = "southcentralus", "northcentralus", admin.Epoch{Number: 2, Location: "southcentralus"}
	taken.FailoverPhase = admin.FailoverTaken
	thawing.FailoverPhase = admin.FailoverThawing
	thawing.Operation = "the end of an unplanned failover without effect: an operator ended it"
	withdrawing.FailoverPhase = admin.FailoverWithdrawing
	withdrawing.Operation = "the end of an unplanned failover without effect, whose claim the witness is to forget: the witness had not let it go on within 2m0s"
	return before, claiming, waits, applying, taken, thawing, withdrawing
}

// R20, R21: what `failover unplanned` prints, for each way it may go. Times are rounded down, so that nothing is promised
// that does not hold.
func TestR20UnplannedText(t *testing.T) {
	before, claiming, waits, applying, taken, thawing, withdrawing := unplannedStates()
	refused := before
	refused.Refused = "a range at southcentralus was recovered with a loss: table. Wait, or accept the part (--accept-part)"
	for name, c := range map[string]struct {
		line   string
		states []admin.AccountUpdated
	}{
		"failover-unplanned-dry":      {"failover unplanned pictures", []admin.AccountUpdated{before}},
		"failover-unplanned-refused":  {"failover unplanned pictures --dry-run", []admin.AccountUpdated{refused}},
		"failover-unplanned-part":     {"failover unplanned pictures --yes --accept-part", []admin.AccountUpdated{applying, taken}},
		"failover-unplanned":          {"failover unplanned pictures --yes", []admin.AccountUpdated{claiming, claiming, waits, applying, taken}},
		"failover-unplanned-json":     {"failover unplanned pictures --yes -o json", []admin.AccountUpdated{applying, taken}},
		"failover-unplanned-ended":    {"failover unplanned pictures --yes", []admin.AccountUpdated{applying, thawing, before}},
		"failover-unplanned-witness":  {"failover unplanned pictures --yes", []admin.AccountUpdated{waits, withdrawing}},
		"failover-unplanned-override": {"failover unplanned pictures --yes --without-witness", []admin.AccountUpdated{applying, taken}},
		"help-failover-unplanned":     {"failover unplanned --help", []admin.AccountUpdated{before}},
	} {
		t.Run(name, func(t *testing.T) {
			url, asked := answers(t, c.states...)
			var out, errOut bytes.Buffer
			tl := newTool(func(name string) string {
				return map[string]string{adminEnv: url, tokenEnv: "antipode-admin-" + strings.Repeat("0", 64)}[name]
			}, &out, &errOut)
			now := time.Duration(0)
			tl.mono = func() time.Duration { return now }
			tl.after = func(d time.Duration) <-chan time.Time {
				now += d
				c := make(chan time.Time, 1)
				c <- time.Time{}
				return c
			}
			code := tl.run(t.Context(), strings.Fields(c.line))
			got := "$ antipodectl " + c.line + "\n" + out.String()
			if errOut.Len() > 0 {
				got += "--- stderr\n" + errOut.String()
			}
			got += "--- exit " + string(rune('0'+code)) + "\n"
			file := filepath.Join("testdata", name+".golden")
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
			for i, f := range *asked {
				require.Equal(t, admin.Failover{
					Type: admin.FailoverUnplanned, To: "southcentralus", DryRun: i > 0 || !strings.Contains(c.line, "--yes"),
					WithoutWitness: strings.Contains(c.line, "--without-witness"),
					AcceptPart:     strings.Contains(c.line, "--accept-part"),
				}, f)
			}
		})
	}
}
