package location

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// An episode of a service is reported once where it begins, once where its reason changes and once where
// it ends, however many samples it lasts. What a single sample shows is not reported.
//
// Capability: Two locations: An account's service that becomes unavailable, and one that is live again, is an event
// with its reason.
func TestEpisodesAreReportedOnce(t *testing.T) {
	t.Parallel()
	e := newEpisodes(ServiceUnavailable, ServiceLive)
	table := serviceKey{"pictures", geo.Table}
	var got []string
	for _, reason := range []string{
		"", "not-heard", "", // A blip.
		"forked", "forked", "forked", "clock", "forked", // One episode, with a blip of another reason in it.
		"lost", "lost", "", "lost", "", "", "",
	} {
		line := ""
		for _, ev := range e.step(map[serviceKey]string{table: reason, {"pictures", geo.Blob}: ""}) {
			require.Equal(t, wire.Event{Kind: ev.Kind, Account: "pictures", Service: "table", Reason: ev.Reason}, ev)
			line += ev.Kind + " " + ev.Reason
		}
		got = append(got, line)
	}
	require.Equal(t, []string{
		"", "", "",
		"", "unavailable forked", "", "", "",
		"", "unavailable lost", "", "", "", "live ", "",
	}, got)
}

// A new account, which has no Last Sync Time for a moment, is not reported; one that is unavailable
// from its first sample on is. A service that is no longer sampled is forgotten.
//
// Capability: Two locations: An account's service that becomes unavailable, and one that is live again, is an event
// with its reason.
func TestEpisodesOfNewServices(t *testing.T) {
	t.Parallel()
	e := newEpisodes(ServiceUnavailable, ServiceLive)
	fresh, down := serviceKey{"fresh", geo.Table}, serviceKey{"down", geo.Table}
	require.Empty(t, e.step(map[serviceKey]string{fresh: "not-heard", down: "forked"}))
	require.Equal(t, []wire.Event{{Kind: "unavailable", Account: "down", Service: "table", Reason: "forked"}},
		e.step(map[serviceKey]string{fresh: "", down: "forked"}))
	require.Empty(t, e.step(map[serviceKey]string{fresh: ""}))
	require.Len(t, e.of, 1)
}

// One cause that reaches every account does not push everything else out of the event log.
//
// Capability: Two locations: An account's service that becomes unavailable, and one that is live again, is an event
// with its reason.
func TestEpisodesAreBounded(t *testing.T) {
	t.Parallel()
	e := newEpisodes(ServiceUnavailable, ServiceLive)
	sample := map[serviceKey]string{}
	for i := range episodeEventsMax + 7 {
		sample[serviceKey{geo.Account(fmt.Sprintf("acct%d", i)), geo.Blob}] = "not-heard"
	}
	require.Empty(t, e.step(sample))
	got := e.step(sample)
	require.Len(t, got, episodeEventsMax+1)
	require.Equal(t, wire.Event{Kind: "unavailable", Reason: "7 more services changed: antipodectl status shows them"}, got[episodeEventsMax])
	require.Empty(t, e.step(sample))
}

// The sampling takes a part of the time that does not grow with the number of accounts, and goes on however long a sample takes.
func TestWatchPause(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0: watchEvery, 50 * time.Millisecond: watchEvery, 100 * time.Millisecond: time.Second, time.Minute: watchMost,
	} {
		require.Equal(t, want, watchPause(took), took)
	}
}
