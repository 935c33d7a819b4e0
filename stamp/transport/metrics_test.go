package transport

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/transport/transporttest"
)

// The scrape shows of each peer what is so: one that is reached, what was sent to it and
// what waits for it while it takes nothing; one that was cut off, and what is dropped then;
// and that it is back. After Close there are no series.
func TestScrapeShowsPeers(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	n := newLoopback(t)
	p := newProxy(t, n.addresses[2])
	n.tune = func(id geo.NodeID, o *Options) {
		if id == 1 {
			o.Peers[2], o.Registerer = p.listener.Addr().String(), reg
		}
	}
	scrape := func(name, peer string) float64 {
		t.Helper()
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if f.GetName() == name && labels["peer"] == peer {
					require.Equal(t, map[string]string{"location": "north", "node": "1", "peer": peer}, labels)
					return m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
		t.Fatalf("no series %s of peer %s", name, peer)
		return 0
	}
	becomes := func(name, peer string, holds func(float64) bool) {
		t.Helper()
		require.Eventually(t, func() bool { return holds(scrape(name, peer)) }, testWait, time.Millisecond, "%s of peer %s", name, peer)
	}
	is := func(want float64) func(float64) bool { return func(v float64) bool { return v == want } }
	above := func(least float64) func(float64) bool { return func(v float64) bool { return v > least } }

	n.Start(1, transporttest.NewMember(t))
	for _, peer := range []string{"2", "3"} {
		for _, name := range []string{"connected", "queue_bytes"} {
			require.Zero(t, scrape("antipode_peer_"+name, peer))
		}
		require.Zero(t, scrape("antipode_peer_sent_bytes_total", peer))
	}
	n.Start(2, transporttest.NewMember(t))
	becomes("antipode_peer_connected", "2", is(1))
	require.Zero(t, scrape("antipode_peer_connected", "3"), "nobody is there")
	dropped := scrape("antipode_peer_dropped_messages_total", "2")

	send := func() {
		n.get(1).Send(1, 2, []node.Envelope{transporttest.Message(1, 2, 1, make([]byte, 64<<10))})
	}
	send()
	becomes("antipode_peer_sent_bytes_total", "2", above(64<<10-1))
	becomes("antipode_peer_queue_bytes", "2", is(0))

	p.setStall(true)
	require.Eventually(t, func() bool {
		send()
		return scrape("antipode_peer_queue_bytes", "2") > 1<<20
	}, testWait, time.Millisecond)
	n.Stop(2)
	p.setStall(false)
	becomes("antipode_peer_connected", "2", is(0))
	becomes("antipode_peer_dropped_messages_total", "2", above(dropped))
	require.Zero(t, scrape("antipode_peer_queue_bytes", "2"), "what waited was dropped")

	n.Start(2, transporttest.NewMember(t))
	becomes("antipode_peer_connected", "2", is(1))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	n.Stop(1)
	count, err := testutil.GatherAndCount(reg)
	require.NoError(t, err)
	require.Zero(t, count)
}
