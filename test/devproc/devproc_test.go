package devproc

import (
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A found base has all ports free, and a base with one port taken is
// refused, whichever port it is.
func TestFreePortBase(t *testing.T) {
	base, err := FreePortBase()
	require.NoError(t, err)
	ports := Ports(base)
	require.Len(t, ports, 13)
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		require.NoError(t, err)
		require.Error(t, probe(addresses(base)), "port %d is taken", port)
		require.NoError(t, l.Close())
	}
}

// Ports found together are different, and lie below those of outgoing connections.
func TestFreePorts(t *testing.T) {
	ports, err := FreePorts(1000)
	require.NoError(t, err)
	require.Less(t, slices.Max(ports), portEnd)
	slices.Sort(ports)
	require.Len(t, slices.Compact(ports), 1000)
}

// Host-style names of every account reach this machine; other addresses are left
// alone.
func TestLoopback(t *testing.T) {
	for in, want := range map[string]string{
		"devstoreaccount1.table.localhost:10002":          "127.0.0.1:10002",
		"devstoreaccount1-secondary.blob.localhost:10000": "127.0.0.1:10000",
		"localhost:80":         "127.0.0.1:80",
		"127.0.0.1:10002":      "127.0.0.1:10002",
		"notlocalhost:1":       "notlocalhost:1",
		"example.localhost.ab": "example.localhost.ab",
	} {
		require.Equal(t, want, loopback(in))
	}
}
