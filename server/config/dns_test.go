package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// The example of the documents is good; defaults are filled in; what a name server cannot work with is named, with its
// line.
func TestDNS(t *testing.T) {
	d, problems, err := LoadDNS("../../docs/dns/dns.yaml")
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, d.Locations, 2)
	require.Equal(t, "10.1.0.3:10080", d.Locations[1].Admin[2])
	require.Equal(t, []DNSPush{{"10.0.0.9:53", "antipode", "/etc/antipode/dns-secret"}}, d.Push)
	d, problems, err = ParseDNS([]byte("{zone: Storage.Example., data: /d, locations: [{location: north, addresses: 10.0.0.1, admin: 'h:1'}]}"))
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, geo.Zone("storage.example"), d.Zone)
	require.Equal(t, DNSListen{":53", "127.0.0.1:10053"}, d.Listen)
	require.Equal(t, Duration("5s"), d.TTL)

	_, _, err = ParseDNS([]byte(`zone: a..b
ttl: 500ms
contact: "@"
data: names
name_servers: [{name: "", addresses: [h]}]
locations:
  - {location: North, addresses: [], admin: []}
  - {location: south, addresses: ["10.0.0.1:53", "fe80::1%eth0"], admin: [":1"]}
  - {location: south, addresses: [10.0.0.1], admin: ["h:1"]}
push:
  - {server: ":53", key: a b, secret_file: secret}
  - {server: "h:53"}
  - {server: "h:53", key: k, secret_file: /s}
`))
	require.EqualError(t, err, `push[1].key: is missing: write the name of the key that the server knows
push[1].secret_file: is missing: write the path of a file with the key's secret, in base64
line 1: zone "a..b": write a DNS name, such as storage.example
line 2: ttl "500ms": write whole seconds, 1s to 1h, such as 5s
line 3: contact "@": write a DNS name, such as storage.example
line 4: data "names": write the whole path, from /: where the process starts must not matter
line 5: name_servers[0].name: write a DNS name, such as storage.example
line 5: name_servers[0].addresses[0] "h": write an address, such as 10.0.0.1 or 2001:db8::1
line 7: locations[0].location "North": write 1 to 63 lower-case letters, digits and hyphens, a letter or digit at both ends, such as northcentralus
line 7: locations[0].addresses: is missing: write the addresses of the location's front ends, such as [10.0.0.1]
line 7: locations[0].admin: is missing: write the admin ports of its nodes, such as [10.0.0.1:10080]
line 8: locations[1].addresses[0] "10.0.0.1:53": write an address, such as 10.0.0.1 or 2001:db8::1
line 8: locations[1].addresses[1] "fe80::1%eth0": write an address, such as 10.0.0.1 or 2001:db8::1
line 8: locations[1].admin[0] ":1": others connect to it: write a name or address of one machine, such as 10.0.0.1:1
line 9: locations[2].location "south": is there twice: write each location once
line 11: push[0].server ":53": others connect to it: write a name or address of one machine, such as 10.0.0.1:53
line 11: push[0].key "a b": write the name of the key, such as antipode
line 11: push[0].secret_file "secret": write the whole path, from /
line 13: push[2].server "h:53": is there twice: write each server once`)
	_, _, err = ParseDNS([]byte("ttl: 5s"))
	require.ErrorContains(t, err, "zone: is missing")
	require.ErrorContains(t, err, "data: is missing")
	require.ErrorContains(t, err, "locations: is missing")
}
