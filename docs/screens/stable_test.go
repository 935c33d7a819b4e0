package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two runs that differ in ports, times and measured values alone print the same, and
// states and counts stay.
func TestStable(t *testing.T) {
	const want = `process  pid 4711, up 5m0s, since 2026-01-05T09:00:00.000Z
alarms   nodes that do not serve 3, silence 4 (last 2026-01-05T09:00:00Z)
WARNING  no server answers at http://127.0.0.1:PORT: refused

LOCATION  STATE    IN SYNC   BACKLOG  OLDEST  LEVEL
north     running  12 of 12  0 B      -       2
south     running  8 of 12   600 B    1.000s  2

NODE     STATE        VERSION  UP  DISK FREE  CLOCK    CERT   LEASE
north-1  running      1.0.0    5m  60.0 GiB   +0.000s  1824d  6s
north-2  unreachable  -        -   -          -        -      none
`
	for _, printed := range []string{`process  pid 22, up 12.305s, since 2026-11-30T07:11:38.536Z
alarms   nodes that do not serve 3, silence 8 (last 2026-11-30T07:11:55Z)
WARNING  no server answers at http://127.0.0.1:18280: refused

LOCATION  STATE    IN SYNC   BACKLOG  OLDEST   LEVEL
north     running  12 of 12  0 B      -        2
south     running  8 of 12   608 B    12.234s  2

NODE     STATE        VERSION  UP   DISK FREE  CLOCK    CERT   LEASE
north-1  running      devel    12s  9.8 GiB    -0.001s  1823d  10s
north-2  unreachable  -        -    -          -        -      none
`, `process  pid 123456, up 1h2m32s, since 2027-01-01T00:00:00.1Z
alarms   nodes that do not serve 3, silence 12 (last 2027-01-01T00:00:00Z)
WARNING  no server answers at http://127.0.0.1:9280: refused

LOCATION  STATE    IN SYNC   BACKLOG   OLDEST  LEVEL
north     running  12 of 12  0 B       -       2
south     running  8 of 12   12.1 KiB  1m5s    2

NODE     STATE        VERSION             UP  DISK FREE  CLOCK    CERT   LEASE
north-1  running      v1.2.3-rc1+abcdef1  1h  110.8 GiB  +0.012s  1824d  6s
north-2  unreachable  -                   -   -          -        -      none
`, want} {
		require.Equal(t, want, stable(printed))
	}
	// Columns of numbers stand to the right in a table of which nothing is replaced.
	const loss = "SERVICE   KNOWN LOST  SINCE\nblob              12  ever\n"
	require.Equal(t, loss, stable(loss))
}

func TestWrap(t *testing.T) {
	line := strings.Repeat("é", columns)
	require.Equal(t, line+"\n", wrap(line+"\n"))
	require.Equal(t, line+"\nab\n\n", wrap(line+"ab\n\n"))
	require.Equal(t, line[:2*(columns-1)]+"\nab", wrap(line[:2*(columns-1)]+" ab"))
}
