package devproc

import (
	"net"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A found base has all ports free, and a base with one port taken is
// refused, whichever port it is.
func TestFreePortBase(t *testing.T) {
	base, err := FreePortBase(t)
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

// What one holds is nobody else's though nothing listens there, as while its server is restarted, whichever port two bases
// share, until it is released. Who asks for it in vain does not listen there, not even for a moment.
func TestPortsAreHeld(t *testing.T) {
	var first, second Held
	base, err := FreePortBase(&first)
	require.NoError(t, err)
	for _, other := range []int{base, base - NorthPorts, base + NorthPorts, base - SouthPorts, base + SouthPorts} {
		require.ErrorIs(t, take(&second, addresses(other)), syscall.EADDRINUSE)
		require.Empty(t, second.release)
	}
	port := []string{loopbackAddress(base + DNSOffset)}
	l, err := net.Listen("tcp", port[0])
	require.NoError(t, err)
	require.ErrorContains(t, take(&second, port), "another test may have")
	first.Release()
	require.ErrorContains(t, take(&second, port), "listen", "somebody listens there")
	require.NoError(t, l.Close())
	require.NoError(t, take(&second, port))
	require.Error(t, take(&first, port))
	second.Release()
	require.NoError(t, take(t, port), "nothing was kept of those that failed")
}

// Ports found together are different, and lie below those of outgoing connections.
func TestFreePorts(t *testing.T) {
	ports, err := FreePorts(t, 1000)
	require.NoError(t, err)
	require.Less(t, slices.Max(ports), portEnd)
	slices.Sort(ports)
	require.Len(t, slices.Compact(ports), 1000)
}

// Ports and bases come from the range that the environment names; a range without room for a base is refused.
func TestPortsVariable(t *testing.T) {
	t.Setenv(PortsVariable, "20000-22900")
	for range 20 {
		base, err := FreePortBase(t)
		if err != nil {
			require.ErrorIs(t, err, ErrNoPorts, "all bases may be held")
			break
		}
		require.True(t, base >= 20000 && base <= 20200, "%d", base)
	}
	ports, err := FreePorts(t, 50)
	require.NoError(t, err)
	require.GreaterOrEqual(t, slices.Min(ports), 20000)
	require.LessOrEqual(t, slices.Max(ports), 22900)
	for _, text := range []string{"20000-20100", "20000", "no"} {
		t.Setenv(PortsVariable, text)
		_, err := FreePortBase(t)
		require.ErrorIs(t, err, ErrNoPorts, text)
	}
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
