package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// The example of the documents is good and has its defaults; what a gateway cannot work with
// is named, with its line.
func TestGateway(t *testing.T) {
	d, problems, err := LoadGateway("../../docs/gateway/gateway.yaml")
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, d.Locations, 2)
	require.Equal(t, "10.1.0.3:10080", d.Locations[1].Nodes[2].Admin)
	require.Equal(t, "/etc/antipode/admin-token", d.Admin.TokenFile)
	d, problems, err = ParseGateway([]byte("locations: [{location: north, nodes: [{node: 1, blob: 'h:1', queue: 'h:2', table: 'h:3'}]}]"))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:10080", d.Listen.Admin)
	require.Equal(t, []geo.Zone{geo.LocalZone}, d.Zones)
	require.ErrorContains(t, problems, "shows no keys and changes nothing", "it has no token")
	require.ErrorContains(t, problems, "the locations see the gateway in place of the client", "it has no certificate")

	_, problems, err = ParseGateway([]byte(`admin: {token_file: /token}
tls: {ca: /ca, cert: /cert, key: /key}
locations:
  - location: north
    nodes: [{node: 1, hop: ":2"}, {node: 1, hop: "h:2"}]
  - location: north
`))
	require.Error(t, err)
	require.Equal(t, `locations[1].nodes: is missing: write the nodes of the location
line 5: locations[0].nodes[0].hop ":2": others connect to it: write a name or address of one machine, such as 10.0.0.1:2
line 5: locations[0].nodes[1].node "1": write the node's number within its stamp, from 1, each once
line 6: locations[1].location "north": is there twice: write each location once`, problems.Error())
	require.ErrorContains(t, func() error { _, _, err := ParseGateway([]byte("tls: {ca: ca}")); return err }(), "tls.key: is missing")
	_, _, err = ParseGateway([]byte("listen: {admin: h}"))
	require.ErrorContains(t, err, "locations: is missing")
}

// Who uses the admin port, and the zones of accounts' names, are the same fields in both
// files: a zone has one spelling, and what is no name is named.
func TestAdminAndZones(t *testing.T) {
	single, err := os.ReadFile("../../docs/node/single.yaml")
	require.NoError(t, err)
	gateway, err := os.ReadFile("../../docs/gateway/gateway.yaml")
	require.NoError(t, err)
	gateway = []byte(strings.ReplaceAll(string(gateway), "admin:\n  token_file: /etc/antipode/admin-token\n", ""))
	good := "\nadmin: {hosts: [ops.example, 10.0.0.9, '2001:db8::9'], token_file: /run/token}\nzones: [Storage.Example., localhost]\nhosts: [gateway, 10.0.0.7]\n"
	n, _, err := Parse(append(slices.Clone(single), good...))
	require.NoError(t, err)
	d, _, err := ParseGateway(append(slices.Clone(gateway), good...))
	require.NoError(t, err)
	require.Equal(t, Admin{Hosts: []string{"ops.example", "10.0.0.9", "2001:db8::9"}, TokenFile: "/run/token"}, n.Admin)
	require.Equal(t, []geo.Zone{"storage.example", "localhost"}, n.Zones)
	require.Equal(t, n.Admin, d.Admin)
	require.Equal(t, n.Zones, d.Zones)
	require.Equal(t, []string{"gateway", "10.0.0.7"}, n.Hosts)
	require.Equal(t, n.Hosts, d.Hosts)

	bad := "\nadmin: {hosts: ['ops.example:80', '*.example', ''], token_file: token}\nzones: [127.0.0.1, a..b]\nhosts: ['gateway:10000']\n"
	for _, err := range []error{
		func() error { _, _, err := Parse(append(slices.Clone(single), bad...)); return err }(),
		func() error { _, _, err := ParseGateway(append(slices.Clone(gateway), bad...)); return err }(),
	} {
		for _, field := range []string{"admin.hosts[0]", "admin.hosts[1]", "admin.hosts[2]", "admin.token_file", "zones[0]", "zones[1]", ": hosts[0]"} {
			require.ErrorContains(t, err, field)
		}
	}
}
