package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
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

// Ports that connections of this machine may have are warned of, and no others.
func TestWarnEphemeral(t *testing.T) {
	warned := func(base int, text string) string {
		var out bytes.Buffer
		warnEphemeral(&out, base, text)
		return out.String()
	}
	const usual = "32768\t60999\n"
	for _, base := range []int{1, 10000, 30687, 61000} {
		require.Empty(t, warned(base, usual), base)
	}
	for _, base := range []int{30688, 40000, 60999} {
		require.Contains(t, warned(base, usual), "connections of this machine get theirs from 32768 to 60999", base)
		require.Contains(t, warned(base, usual), "Choose a base below 30688", base)
	}
	require.Contains(t, warned(10000, "1024 65535"), "WARNING")
	for _, text := range []string{"", "no numbers", "1024"} {
		require.Empty(t, warned(40000, text), text)
	}
}
