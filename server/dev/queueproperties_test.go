package dev

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/test/rest"
)

// settings are what the primary answers of what a queue service has beside messages: its properties, what follows from its CORS
// rules, and the list, metadata and policies of queues.
func settings(t *testing.T, c *rest.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range []string{"list", "properties", "metadata", "head", "acl", "cors", "preflight"} {
		a := ask(t, c, queueReads()[name])
		require.True(t, a.OK(), "%s: %v", name, a)
		out[name] = comparable(a, "northacct")
	}
	return out
}

// setQueue gives the queue service and its first queue other settings. Each names its color or a number that differs from that
// of others.
func setQueue(t *testing.T, c *rest.Client, color, n string) {
	t.Helper()
	for _, r := range []rest.Request{
		{Path: "/jobs", Query: "comp=metadata", Header: map[string]string{"x-ms-meta-Color": color}},
		{Path: "/jobs", Query: "comp=acl", Body: []byte(strings.ReplaceAll(policies, "<Id>p1", "<Id>p"+n))},
		{Path: "/", Query: "restype=service&comp=properties", Body: []byte(strings.ReplaceAll(serviceProperties, "Seconds>7<", "Seconds>"+n+"<"))},
	} {
		r.Method = http.MethodPut
		requireAsked(t, c, r)
	}
}

// Properties of the queue service with its CORS rules, metadata and policies of queues are the same through a planned failover
// and back, and both primaries take changes of them. Through an unplanned one those that had arrived are the same; those that
// had not are gone, at the former primary, too, once it follows (R19, R20, R22).
func TestR20QueueSettingsOutliveFailovers(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	primary := queueClient(t, c, "northacct", false)
	fillQueues(t, primary)
	first := settings(t, primary)
	require.Contains(t, first["properties"], "<MaxAgeInSeconds>7<")
	require.Contains(t, first["preflight"], "Access-Control-Max-Age: 7")
	require.Contains(t, first["metadata"], "red")
	require.Contains(t, first["acl"], "<Id>p1<")

	moveTo(t, c, "northacct", North, South)
	require.Equal(t, first, settings(t, primary))
	setQueue(t, primary, "green", "20")
	second := settings(t, primary)
	for name := range first {
		require.NotEqual(t, first[name], second[name], name)
	}
	_, err := c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	moveTo(t, c, "northacct", South, North)
	require.Equal(t, second, settings(t, primary))

	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	setQueue(t, primary, "blue", "30")
	arrived := settings(t, primary)
	requireSameQueues(t, c, "northacct")
	c.link.Cut()
	setQueue(t, primary, "black", "40")
	lost := settings(t, primary)
	require.NoError(t, c.stopLocation(t.Context(), North))
	c.link.Heal()
	promote(t, c, "northacct")
	require.Equal(t, arrived, settings(t, primary))

	require.NoError(t, c.startLocation(t.Context(), North))
	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, arrived, settings(t, primary))
	requireSameQueues(t, c, "northacct")
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)
	for name := range lost {
		require.NotEqual(t, lost[name], arrived[name], name)
	}
	setQueue(t, primary, "white", "50")
	requireSameQueues(t, c, "northacct")
}
