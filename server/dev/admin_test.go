package dev

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/admin"
	wire "antipode/client/admin"
	"antipode/client/check"
	"antipode/geo"
	"antipode/stamp/feature"
)

// The admin ports of antipode dev, on real sockets: a page of a rebound name gets nothing, a
// key is shown to who has the token alone, a client on this machine finds it by itself, and
// keeps it over a restart of the process.
func TestAdminPortsAreClosed(t *testing.T) {
	t.Parallel()
	c := startWith(t, ClusterOptions{AdminHosts: []string{"ops.example"}})
	ask := func(p Ports, method, path, host string, headers ...string) answer {
		r := httptest.NewRequest(method, "http://"+p.Admin()+path, nil)
		r.RequestURI, r.Host = "", host
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		a, err := roundTrip(r)
		require.NoError(t, err)
		return a
	}
	const keys = "/v1/accounts/northacct/keys"
	for _, p := range []Ports{c.gateway, c.ports[North], c.ports[South]} {
		evil := "evil.example" + strings.TrimPrefix(p.Admin(), "127.0.0.1")
		require.Equal(t, http.StatusForbidden, ask(p, http.MethodGet, keys, evil).status)
		require.Equal(t, http.StatusForbidden, ask(p, http.MethodPost, "/v1/link/heal", evil, "Origin", "http://"+evil).status)
		require.Equal(t, http.StatusForbidden, ask(p, http.MethodGet, "/v1/status", p.Admin(), "Origin", "http://evil.example").status)
		require.Equal(t, http.StatusUnauthorized, ask(p, http.MethodGet, keys, "ops.example").status)

		long := ask(p, http.MethodGet, "/healthz", p.Admin(), "X-Long", strings.Repeat("x", 40<<10))
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, long.status, "the limits are those of an admin port")

		client, err := wire.New("http://"+p.Admin(), nil)
		require.NoError(t, err)
		k, err := client.Keys(t.Context(), "northacct")
		require.NoError(t, err)
		require.NotEmpty(t, k.Key1)
	}
	path := filepath.Join(c.o.Dir, admin.TokenFileName)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	again, err := admin.OpenTokenFile(path)
	require.NoError(t, err)
	require.Equal(t, c.token, again)
	http.DefaultClient.CloseIdleConnections()
}

// A node that does not exist is not found, whatever is asked of it.
func TestAdminPortHasNoSuchNode(t *testing.T) {
	t.Parallel()
	c := startWith(t, ClusterOptions{})
	client, err := wire.New("http://"+c.gateway.Admin(), nil)
	require.NoError(t, err)
	var none *wire.Error
	_, err = client.NodeSupport(t.Context(), wire.NodeName(North, 9))
	require.ErrorAs(t, err, &none)
	require.Equal(t, http.StatusNotFound, none.Status, none.Message)
	_, err = client.StopNode(t.Context(), wire.NodeName(South, 9))
	require.ErrorAs(t, err, &none)
	require.Equal(t, http.StatusNotFound, none.Status, none.Message)
	require.Equal(t, wire.CodeNoNode, none.Code)
}

// A node that could not be opened, since its folder is of a later version or a file of it is damaged, is out of service:
// the status and the metrics have it, with what to do, until it is opened or stopped; also if that kept a whole location
// from starting.
//
// Capability: Operation: A node that failed or could not be opened is an alarm.
func TestNodesOutOfService(t *testing.T) {
	t.Parallel()
	c := startWith(t, ClusterOptions{})
	name := wire.NodeName(South, 2)
	file := filepath.Join(c.o.Dir, string(South), name, "level")
	node := func() wire.Node {
		s, err := c.admin.Status(t.Context())
		require.NoError(t, err)
		n := s.Locations[1].Nodes[1]
		require.Equal(t, name, n.Name)
		return n
	}
	down := func() (series []string) {
		for s, v := range gather(t, c) {
			if strings.HasPrefix(s, "antipode_node_out_of_service{") {
				require.InDelta(t, 1, v, 0)
				series = append(series, s)
			}
		}
		return series
	}
	require.NoError(t, c.stopNode(t.Context(), South, 2))
	require.Equal(t, wire.Node{Name: name, State: wire.Stopped}, node())
	require.Empty(t, down(), "an operator stopped it")

	later := fmt.Sprintf("finalized at feature level %d, this program knows level %d at most: a later version wrote it: start the version that did", feature.Known+1, feature.Known)
	for _, k := range []struct {
		file, reason, why string
		again             string
	}{
		{fmt.Sprintf("antipode level %d\n", feature.Known+1), "version", later, ", nothing was changed here"},
		{"antipode lev", "store", "the file level is damaged", "mend that, then: antipodectl node start " + name},
	} {
		require.NoError(t, os.WriteFile(file, []byte(k.file), 0o600))
		require.ErrorContains(t, c.startNode(t.Context(), South, 2), k.why)
		n := node()
		require.Equal(t, wire.Failed, n.State)
		require.Contains(t, n.OutOfService, k.why)
		require.True(t, strings.HasSuffix(n.OutOfService, k.again), n.OutOfService)
		require.NotContains(t, n.OutOfService, "\n")
		require.Equal(t, []string{fmt.Sprintf(`antipode_node_out_of_service{location="southcentralus",node="2",reason="%s"}`, k.reason)}, down())
	}
	require.NoError(t, c.stopNode(t.Context(), South, 2))
	require.Equal(t, wire.Stopped, node().State)
	require.Empty(t, down())

	require.NoError(t, c.servers[South].Stop())
	require.ErrorContains(t, c.servers[South].Start(t.Context()), "the file level is damaged")
	n := node()
	require.Equal(t, wire.Failed, n.State)
	require.True(t, strings.HasSuffix(n.OutOfService, "mend that, then: antipodectl location start southcentralus"), n.OutOfService)
	require.Len(t, down(), 1)

	// As the message says.
	s, err := c.admin.Status(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "antipode level %d\n", s.Locations[0].Levels.Floor), 0o600))
	require.NoError(t, c.servers[South].Start(t.Context()))
	require.Empty(t, down())
	require.Equal(t, wire.Running, node().State)
	require.Empty(t, node().OutOfService)
}

// The status has the feature levels of both locations and of their nodes. What is finalized already is not raised again,
// and what no program knows is refused with the node that would not know it, also on the port that one location has.
func TestAdminFinalizes(t *testing.T) {
	t.Parallel()
	c := startWith(t, ClusterOptions{})
	client, err := wire.New("http://"+c.gateway.Admin(), nil)
	require.NoError(t, err)
	s, err := client.Status(t.Context())
	require.NoError(t, err)
	for _, l := range s.Locations {
		require.Equal(t, &wire.Levels{Floor: 1, Active: 1}, l.Levels)
		require.NotEmpty(t, l.Peer)
		for _, n := range l.Nodes {
			require.EqualValues(t, feature.Known, n.Level)
		}
	}
	f, err := client.Finalize(t.Context(), wire.Finalize{})
	require.NoError(t, err)
	require.Equal(t, wire.Finalized{Level: uint32(feature.Known), Raised: true, Locations: []geo.Location{North, South}}, f)
	eventually(t, "the nodes that answer have applied the level, so that it is not raised again", func() bool {
		f, err = client.Finalize(t.Context(), wire.Finalize{})
		require.NoError(t, err)
		return !f.Raised
	})
	require.Equal(t, wire.Finalized{Level: uint32(feature.Known), Locations: []geo.Location{North, South}}, f)
	var refused *wire.Error
	for code, in := range map[string]wire.Finalize{
		"InvalidInput": {Level: new(uint32(feature.Known) + 1)}, wire.CodeNoNode: {Without: []string{wire.NodeName(North, 4)}},
	} {
		_, err = client.Finalize(t.Context(), in)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, code, refused.Code, refused.Message)
	}

	_, err = client.RaiseLevels(t.Context(), North, wire.Levels{Floor: 1, Active: 1})
	require.NoError(t, err)
	_, err = client.RaiseLevels(t.Context(), South, wire.Levels{Floor: uint32(feature.Known) + 1, Active: 1})
	require.ErrorContains(t, err, "finalized at feature level")
	one, err := wire.New("http://"+c.ports[North].Admin(), nil)
	require.NoError(t, err)
	_, err = one.Finalize(t.Context(), wire.Finalize{})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusForbidden, refused.Status, refused.Message)
}

// A range without a leader is no cause for alarm while its replicas elect one: a node that has just started waits
// for the others, and only when they have not come for longer than an election takes its ranges have none.
func TestElectionIsNotTheLossOfALeader(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		require.NoError(t, c.stopNode(t.Context(), South, id))
	}
	require.NoError(t, c.startNode(t.Context(), South, 1))
	worst := func() check.Severity {
		s, err := c.admin.Status(t.Context())
		require.NoError(t, err)
		for _, f := range check.Status(s) {
			if strings.Contains(f.What, "leader") {
				return f.Severity
			}
		}
		return ""
	}
	require.Equal(t, check.Warning, worst(), "it elects")
	eventually(t, "nobody comes", func() bool { return worst() == check.Critical })
	require.NoError(t, c.startNode(t.Context(), South, 2))
	eventually(t, "two elect one", func() bool { return worst() == "" })
}
