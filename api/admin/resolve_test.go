package admin

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// R16: a page of the lost-and-found can be dropped whatever the length of its keys: in more than one request, since the
// body of one is bounded.
func TestR16AllRowsOfAPageAreDropped(t *testing.T) {
	f := newFake()
	file, err := OpenTokenFile(filepath.Join(t.TempDir(), "data", TokenFileName))
	require.NoError(t, err)
	srv := httptest.NewServer(Handler(f, prometheus.NewRegistry(), Options{TokenFile: file}))
	defer srv.Close()
	c, err := wire.New(srv.URL, srv.Client())
	require.NoError(t, err)
	for _, size := range []int{4, 300, 14 << 10} {
		var q wire.DropFound
		for n := range wire.FoundRowsMax {
			q.Keys = append(q.Keys, strings.Repeat("0", size)+fmt.Sprint(n))
		}
		before := len(f.calls())
		out, err := c.DropFound(context.Background(), south, q)
		require.NoError(t, err, "keys of %d digits", size)
		require.Equal(t, wire.FoundRowsMax, out.Dropped)
		var asked []string
		for _, call := range f.calls()[before:] {
			asked = append(asked, strings.Fields(strings.TrimSuffix(strings.TrimPrefix(call, "drop ["), fmt.Sprintf("] at %s", south)))...)
		}
		require.Equal(t, q.Keys, asked, "each once, in order")
	}
	out, err := c.DropFound(context.Background(), south, wire.DropFound{})
	require.NoError(t, err)
	require.Zero(t, out.Dropped)
}
