package listen

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an error advises fits its cause: a port in use, an address of another machine, a port that is for root.
func TestRemedyFitsTheCause(t *testing.T) {
	fails := func(addr string) error {
		s, err := Open([]Listener{{Addr: addr, What: "test"}}, "--port-base", slog.New(slog.DiscardHandler))
		if err == nil {
			require.NoError(t, s.Close())
		}
		return err
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	err = fails(taken.Addr().String())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, "; stop what uses the port, or choose others with --port-base")

	// 192.0.2.0/24 is for documents (RFC 5737): no machine has it.
	err = fails("192.0.2.1:0")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.ErrorContains(t, err, "; no interface of this machine has that address: choose one that it has")
	require.NotContains(t, err.Error(), "--port-base")

	// The tests may run as root, which has all ports.
	denied := fmt.Errorf("listen: %w", os.NewSyscallError("bind", syscall.EACCES))
	require.Equal(t, "this user may not listen on so low a port: choose ports from 1024 on with --port-base, or give the process CAP_NET_BIND_SERVICE",
		Remedy(denied, "--port-base"))
}
