package main

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/test/fake"
)

// A number of bytes is read with its unit and printed in the greatest one.
func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "17": 17, "1KiB": 1 << 10, "1.5MiB": 3 << 19, "10GiB": 10 << 30} {
		var b byteSize
		require.NoError(t, b.Set(text))
		require.Equal(t, want, b)
		require.Equal(t, text, b.String())
	}
	for _, text := range []string{"", "x", "-1", "1GB", "9999999GiB"} {
		require.Error(t, new(byteSize).Set(text), "%q", text)
	}
}

// A run with a number of bytes ends when they are moved, long before its time, and its
// rate is over the time it took; one whose time ends first is void.
func TestBytesEndARun(t *testing.T) {
	server := httptest.NewServer(&store{Store: fake.New(fake.Faults{}, 0)})
	defer server.Close()
	args := []string{
		"--workload", workloadInsert, "--endpoint", server.URL + "/devstoreaccount1", "--admin", "",
		"--concurrency", "4", "--warmup", "0s", "--read-back", "0", "--bytes",
	}
	var out strings.Builder
	o := options(t, append(args, "100KiB")...)
	require.Equal(t, bytesDuration, o.Duration)
	require.NoError(t, measure(t.Context(), o, clock.System{}, &out))
	require.Contains(t, out.String(), "errors    none")

	o = options(t, append(args, "100GiB", "--duration", "100ms")...)
	require.Equal(t, 100*time.Millisecond, o.Duration)
	require.ErrorContains(t, measure(t.Context(), o, clock.System{}, &out), "of 100GiB were moved")
}
