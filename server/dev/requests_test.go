package dev

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// answer is what a request got.
type answer struct {
	status int
	header http.Header
	body   string
}

// call sends a signed table request to a front end, again where nothing happened because a range had no leader, as on a
// starved machine: a client tries again, too.
func call(t *testing.T, p Ports, account geo.Account, method, target, body string, headers ...string) answer {
	t.Helper()
	for end := time.Now().Add(leaderWait); ; <-time.After(testTick) {
		a := once(t, p, account, method, target, body, headers...)
		if !leaderless(a) || time.Now().After(end) {
			return a
		}
	}
}

// once is call of a request that is sent once: who asks again does it by itself, or is to be refused.
func once(t *testing.T, p Ports, account geo.Account, method, target, body string, headers ...string) answer {
	t.Helper()
	a, err := try(p, account, method, target, body, headers...)
	require.NoError(t, err)
	return a
}

// leaderless reports whether an answer is that no range took the request, for no reason of its account's or location's.
func leaderless(a answer) bool {
	return a.status == http.StatusServiceUnavailable &&
		(strings.Contains(a.body, storageerr.ServerBusy.Message) || strings.Contains(a.body, "No server can be reached that serves this part of the account now."))
}

// stallMax bounds the time in which a reader sees nothing new, a restart included. How long all of it takes is up to the machine.
const stallMax = 2 * time.Minute

// leaderWait bounds the wait for a leader of a range.
const leaderWait = 30 * time.Second

// inSync waits until all replicas of a service's range are in sync, which they are unless the machine starves: one that was not
// for a while has fetched all that it lacked when it is again (R3).
func inSync(t *testing.T, c *Cluster, l geo.Location, s geo.Service) {
	t.Helper()
	eventually(t, "all replicas are in sync", func() bool {
		lead := c.locations[l].Leader(geo.FirstRange(s))
		return lead != nil && lead.InSync() == nodesPerLocation
	})
}

// leaderOf waits until a range of a location has a leader.
func leaderOf(c *Cluster, l geo.Location, id geo.RangeID) *ranges.Range {
	for end := time.Now().Add(leaderWait); time.Now().Before(end); <-time.After(testTick) {
		if lead := c.locations[l].Leader(id); lead != nil {
			return lead
		}
	}
	panic(fmt.Sprintf("range %d of %s has no leader", id, l))
}

func try(p Ports, account geo.Account, method, target, body string, headers ...string) (answer, error) {
	r, err := http.NewRequest(method, "http://"+p.Of(geo.Table)+target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("x-ms-version", "2019-02-02")
	r.Header.Set("Accept", "application/json;odata=nometadata")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if err := auth.SignSharedKeyLite(r, geo.Table, account, key64, time.Now()); err != nil {
		return answer{}, err
	}
	return roundTrip(r)
}

// roundTrip sends a request and reads its answer.
func roundTrip(r *http.Request) (answer, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return answer{}, err
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return answer{resp.StatusCode, resp.Header, string(b)}, err
}

// busy reports whether nothing happened because a range had no leader for a moment, as on a starved
// machine: a client tries again.
func busy(a answer, err error) bool {
	return err == nil && a.status == http.StatusServiceUnavailable
}

// unanswered is busy, and whether it is not known what happened, because a leader was deposed meanwhile: a client may write
// the same value again.
func unanswered(a answer, err error) bool {
	return busy(a, err) || err == nil && a.header.Get("x-ms-error-code") == storageerr.OperationTimedOut.Code
}
