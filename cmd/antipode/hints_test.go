package main

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/server/cluster"
	"antipode/server/dev"
)

// The commands that a start prints work as they are copied: beside the program, with the address where it is not the
// one that antipodectl tries.
func TestHintsWorkAsCopied(t *testing.T) {
	for _, c := range []struct{ program, address, want string }{
		{"antipode", "127.0.0.1:10080", "antipodectl"},
		{"bin/antipode", "127.0.0.1:10080", "bin/antipodectl"},
		{"/usr/bin/antipode", "127.0.0.1:20080", "/usr/bin/antipodectl --admin http://127.0.0.1:20080"},
		{"bin/antipode", "0.0.0.0:10080", "bin/antipodectl"},
		{"bin/antipode", ":20080", "bin/antipodectl --admin http://127.0.0.1:20080"},
		{"bin/antipode", "[::]:20080", "bin/antipodectl --admin http://127.0.0.1:20080"},
		{"antipode", "10.0.0.1:10080", "antipodectl --admin http://10.0.0.1:10080"},
		{"antipode", "[::1]:10080", "antipodectl --admin http://[::1]:10080"},
	} {
		require.Equal(t, c.want, ctlFor(c.program, c.address))
	}
}

// Ports that connections of this machine may have are warned of, and no others: up to the last one of a process of
// `antipode dev`, or of a cluster, whose nodes 2 and 3 have theirs above.
func TestWarnEphemeral(t *testing.T) {
	const usual = "32768\t60999\n"
	for _, c := range []struct {
		baseMax, below int
		last           string
	}{
		{dev.PortBaseMax, 30688, "ports up to 42080 are used"},
		{cluster.PortBaseMax, 30488, "ports up to 42280 are used"},
	} {
		warned := func(base int, text string) string {
			var out bytes.Buffer
			warnEphemeral(&out, base, c.baseMax, text)
			return out.String()
		}
		for _, base := range []int{1, 10000, c.below - 1, 61000} {
			require.Empty(t, warned(base, usual), base)
		}
		for _, base := range []int{c.below, 40000, 60999} {
			require.Contains(t, warned(base, usual), "connections of this machine get theirs from 32768 to 60999", base)
			require.Contains(t, warned(base, usual), fmt.Sprintf("Choose a base below %d.", c.below), base)
		}
		require.Contains(t, warned(40000, usual), c.last)
		require.Contains(t, warned(10000, "1024 65535"), "WARNING")
		require.NotContains(t, warned(10000, "1024 65535"), "Choose", "there is none")
		for _, text := range []string{"", "no numbers", "1024"} {
			require.Empty(t, warned(40000, text), text)
		}
	}
}

// No process of a cluster has a port above the one that the warning names.
func TestGreatestBaseOfACluster(t *testing.T) {
	o := cluster.Options{PortBase: 20000}
	last := 0
	for _, address := range o.Ports() {
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		last = max(last, n)
	}
	require.Equal(t, 65535, last-o.PortBase+cluster.PortBaseMax, "the greatest base has the last port")
}
