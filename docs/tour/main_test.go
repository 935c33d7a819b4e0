package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without a server the tour names the command that starts one.
func TestWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	for _, args := range [][]string{{"get"}, {"stats"}, {"put", "one"}} {
		err := run(t.Context(), endpoint+"/"+account, args)
		require.EqualError(t, short(err, endpoint), "no server answers at "+endpoint+": start one by make run in another terminal, or give -endpoint")
	}
	require.EqualError(t, short(run(t.Context(), endpoint, nil), endpoint), "want put VALUE, get or stats")
}
