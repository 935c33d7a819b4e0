package main

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWarnOpenHost: who listens for others is warned of the admin port whatever the keys,
// and of a public key besides.
func TestWarnOpenHost(t *testing.T) {
	own, err := parseAccounts("photos:c2VjcmV0")
	require.NoError(t, err)
	public, err := parseAccounts("")
	require.NoError(t, err)
	warn := func(host string, list []account) string {
		var out bytes.Buffer
		warnOpenHost(&out, host, list)
		return out.String()
	}
	for _, host := range []string{"127.0.0.1", "127.8.0.1", "::1", "localhost"} {
		require.Empty(t, warn(host, public), host)
	}
	for _, host := range []string{"0.0.0.0", "::", "", "10.0.0.1", "server.example"} {
		require.Contains(t, warn(host, own), "admin port", host)
		require.NotContains(t, warn(host, own), devAccount, host)
		require.Contains(t, warn(host, public), "admin port", host)
		require.Contains(t, warn(host, public), devAccount, host)
	}
}

// TestParseZones: --zone takes DNS names only.
func TestParseZones(t *testing.T) {
	zones, err := parseZones([]string{"localhost", "Storage.Example."})
	require.NoError(t, err)
	require.Len(t, zones, 2)
	require.EqualValues(t, "storage.example", zones[1])
	for _, bad := range []string{"", "127.0.0.1", "*.example", "http://storage.example", "storage.example:80"} {
		_, err := parseZones([]string{bad})
		require.ErrorContains(t, err, "--zone", bad)
	}
}

// TestAdminHost: --admin-host takes what a Host header can name; anything else would be
// refused for ever without a word.
func TestAdminHost(t *testing.T) {
	for _, bad := range []string{"http://ops.example", "ops.example:10080", "*.example"} {
		err := runDev(io.Discard, devFlags{portBase: 25300, adminHosts: []string{bad}, data: t.TempDir(), host: "127.0.0.1"})
		require.ErrorContains(t, err, "--admin-host", bad)
		err = runDev(io.Discard, devFlags{portBase: 25300, hosts: []string{bad}, data: t.TempDir(), host: "127.0.0.1"})
		require.ErrorContains(t, err, "--data-host", bad)
	}
}

// Numbers and times of flags that cannot be are refused before anything is made, with the flag, the
// value and what is allowed (table).
func TestDevFlags(t *testing.T) {
	for _, c := range []struct {
		change func(f *devFlags)
		want   string
	}{
		{func(f *devFlags) { f.portBase = 0 }, "--port-base 0: want 1 to "},
		{func(f *devFlags) { f.portBase = -1 }, "--port-base -1: want 1 to "},
		{func(f *devFlags) { f.portBase = 65536 }, "--port-base 65536: want 1 to "},
		{func(f *devFlags) { f.outbox.Age = -1 }, "--outbox-age -1ns: want a span of time, or 0 for the default of 72h"},
		{func(f *devFlags) { f.outbox.Bytes = 1 << 63 }, "--outbox-bytes 9223372036854775808, --outbox-account-bytes 0: want 9223372036854775807 at most"},
		{func(f *devFlags) { f.nameRest = -time.Second }, "--name-rest -1s: want a span of time, or 0 for none"},
		{func(f *devFlags) { f.scrub = -time.Hour }, "--scrub-period -1h0m0s: want a span of time, or 0 for the default of 168h"},
		{func(f *devFlags) { f.accountsShown = -2 }, "--metrics-accounts -2: want 1 to 10000, -1 for none, or 0 for the default of 100"},
		{func(f *devFlags) { f.accountsShown = 10001 }, "--metrics-accounts 10001: want 1 to 10000, -1 for none, or 0 for the default of 100"},
	} {
		f := devFlags{portBase: 25300, data: filepath.Join(t.TempDir(), "data"), host: "127.0.0.1"}
		require.NoError(t, f.validate())
		c.change(&f)
		require.ErrorContains(t, runDev(io.Discard, f), c.want)
		require.NoDirExists(t, f.data)
	}
}
