package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files; then read the diff")

// The help of `antipode dns`, with its examples, is what the golden file has.
func TestDNSHelp(t *testing.T) {
	said, err := run(dnsCommand(), "--help")
	require.NoError(t, err)
	const file = "testdata/help-dns.golden"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(said), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), said)
}

// `config check --dns` passes the example of the documents; a file that cannot be is refused before anything is made, and
// so is a zone that is none.
func TestDNSConfig(t *testing.T) {
	said, err := run(configCommand(), "check", "--dns", "../../docs/dns/dns.yaml")
	require.NoError(t, err)
	require.Contains(t, said, "good; warnings: 0")
	_, err = run(configCommand(), "check", "--dns", "--gateway", "../../docs/dns/dns.yaml")
	require.ErrorContains(t, err, "want one of them")

	file := filepath.Join(t.TempDir(), "dns.yaml")
	require.NoError(t, os.WriteFile(file, []byte("zone: a..b\n"), 0o600))
	_, err = run(dnsCommand(), "--config", file)
	require.ErrorContains(t, err, `line 1: zone "a..b"`)
	_, err = run(dnsCommand())
	require.ErrorContains(t, err, "config")

	data := filepath.Join(t.TempDir(), "data")
	err = runDev(io.Discard, devFlags{portBase: 25300, dnsZone: "127.0.0.1", data: data, host: "127.0.0.1"})
	require.ErrorContains(t, err, `--dns-zone "127.0.0.1"`)
	require.NoDirExists(t, data)
}

// The zone of the name server is one of the zones of accounts, once.
func TestDNSZoneIsAZone(t *testing.T) {
	for _, given := range [][]string{{"localhost"}, {"localhost", "antipode.test"}} {
		zones, dns, err := devFlags{zones: given, dnsZone: "Antipode.test."}.parseZones()
		require.NoError(t, err)
		require.EqualValues(t, "antipode.test", dns)
		require.Len(t, zones, 2)
		require.Equal(t, dns, zones[1])
	}
	require.Equal(t, "dig @127.0.0.1 -p 10053 +short acct.blob.antipode.test", digFor("127.0.0.1:10053", "acct", "antipode.test"))
}
