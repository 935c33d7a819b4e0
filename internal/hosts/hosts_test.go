package hosts

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A port is addressed by loopback, by the address a connection came to, and
// by what was configured; ports play no part, since a port may be mapped.
func TestHosts(t *testing.T) {
	h := New("Admin.Example:10080", "prom.example", "198.51.100.7", "2001:db8::7")
	allowed := func(h Hosts, host, local string) bool {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		if local != "" {
			addr, err := net.ResolveTCPAddr("tcp", local)
			require.NoError(t, err)
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
		}
		return h.Allow(r)
	}
	for _, host := range []string{
		"localhost", "LOCALHOST:1", "localhost.:10080", "127.0.0.1", "127.3.2.1:10080", "[::1]:10080", "[::1]", "[::ffff:127.0.0.1]:1",
		"admin.example", "ADMIN.example.:99", "prom.example:10080", "198.51.100.7:10080", "[2001:db8::7]:1", "10.0.0.5:10080",
	} {
		require.True(t, allowed(h, host, "10.0.0.5:10080"), host)
	}
	for _, host := range []string{
		"", "evil.example", "localhost.evil.example", "evil.localhost", "127.0.0.1.evil.example", "prom.example.evil", "xprom.example", "10.0.0.6:10080",
		"198.51.100.8", "[2001:db8::8]:1", "0.0.0.0:10080", "[::]:10080", "2130706433", "127.1", "0x7f000001", "localhost:1:2", "local\u212aost", "user@localhost",
	} {
		require.False(t, allowed(h, host, "10.0.0.5:10080"), host)
	}
	require.False(t, allowed(New(""), "10.0.0.5", ""), "an address that nothing came to")
	any := New("", "prom.example").WithAnyAddress()
	for _, host := range []string{"203.0.113.9", "203.0.113.9:10000", "[2001:db8::9]:1", "prom.example", "localhost"} {
		require.True(t, allowed(any, host, "10.0.0.5:10080"), host)
	}
	for _, host := range []string{"", "evil.example", "203.0.113.9.evil.example", "3405803785", "203.0.113"} {
		require.False(t, allowed(any, host, "10.0.0.5:10080"), host)
	}
	require.False(t, allowed(New("0.0.0.0:10080"), "0.0.0.0:10080", "10.0.0.5:10080"))
	require.False(t, allowed(New(":10080"), "", "10.0.0.5:10080"))
	for _, host := range []string{"localhost:1", "admin.example", "ADMIN.example.:99", "198.51.100.7:10080", "[2001:db8::7]"} {
		require.True(t, h.WithAnyAddress().Named(host), host)
	}
	for _, host := range []string{"", "127.0.0.1", "[::1]:1", "203.0.113.9", "0.0.0.0", "evil.example", "198.51.100.8"} {
		require.False(t, h.WithAnyAddress().Named(host), "%s is allowed at most", host)
	}
}
