package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
)

// A location whose events are missing, since it does not answer, is named beside those of the other one.
func TestEventsNameWhoIsSilent(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.EventList{
			Events: []admin.Event{{Number: 1, Location: "southcentralus", Kind: "disk-full", Node: "southcentralus-1"}}, Silent: []string{"northcentralus"},
		})
	}))
	defer srv.Close()
	code, out, errOut := ctl(srv.URL, "events")
	require.Equal(t, command.Done, code)
	require.Contains(t, out, "disk-full")
	require.Equal(t, "WARNING: northcentralus does not answer: its events are missing\n", errOut)
	code, out, errOut = ctl(srv.URL, "events", "-o", "json")
	require.Equal(t, command.Done, code)
	require.Contains(t, out, `"silent": [`)
	require.NotEmpty(t, errOut)
}

// The newest events are shown, 100 of them if nobody gives a limit, newest last, and how many older ones are left off is said
// before them; 0 is all. A watch bounds what is there at first alone.
func TestEventsAreBounded(t *testing.T) {
	const many = 130
	list := []admin.Event{}
	for n := uint64(many); n > 0; n-- {
		list = append(list, admin.Event{Number: n, Location: "southcentralus", Kind: fmt.Sprintf("kind-%d", n)})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.EventList{Events: list})
	}))
	defer srv.Close()
	for _, c := range []struct {
		line         string
		shown, older int
	}{
		{"events", 100, 30},
		{"events --limit 7", 7, 123},
		{"events --limit 0", many, 0},
		{"events --limit 130", many, 0},
	} {
		code, out, errOut := ctl(srv.URL, strings.Fields(c.line)...)
		require.Equal(t, command.Done, code, errOut)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if c.older > 0 {
			require.Equal(t, check.Count(c.older, "older event")+" left off: antipodectl events --limit 0", lines[0], c.line)
			lines = lines[1:]
		}
		require.Len(t, lines, c.shown, c.line)
		require.Contains(t, lines[0], fmt.Sprintf("kind-%d ", many-c.shown+1), c.line)
		require.Contains(t, lines[c.shown-1], "kind-130 ", c.line)

		_, out, _ = ctl(srv.URL, append(strings.Fields(c.line), "-o", "json")...)
		var doc admin.EventList
		require.NoError(t, json.Unmarshal([]byte(out), &doc))
		require.Len(t, doc.Events, c.shown)
		require.Equal(t, c.older, doc.LeftOff)
	}
	code, _, errOut := ctl(srv.URL, "events", "--limit", "-1")
	require.Equal(t, command.Usage, code)
	require.Contains(t, errOut, "--limit is how many events are shown, 0 for all, not -1")

	var out, errs bytes.Buffer
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	tl, looks := newTool(func(string) string { return srv.URL }, &out, &errs), 0
	tl.after = func(time.Duration) <-chan time.Time {
		if looks++; looks == 2 {
			interrupt()
			return nil
		}
		for n := uint64(many + 1); n <= many+5; n++ {
			list = append([]admin.Event{{Number: n, Location: "southcentralus", Kind: "later"}}, list...)
		}
		passed := make(chan time.Time, 1)
		passed <- time.Time{}
		return passed
	}
	require.Equal(t, command.Done, tl.run(ctx, []string{"events", "--watch", "--limit", "2"}), errs.String())
	require.Equal(t, 1+2+5, strings.Count(out.String(), "\n"), out.String())
	require.Equal(t, 5, strings.Count(out.String(), "later"))
}
