package api_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
)

type buggyDirectory struct{}

func (buggyDirectory) Resolve(context.Context, geo.Account, geo.Service, func(*catalog.Account) string) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	panic("no directory")
}

// lockedBuffer may be read while a server logs.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A panic is answered 500, and logged once with the place where it happened.
func TestPanicIsLoggedWithItsStack(t *testing.T) {
	t.Parallel()
	var logged lockedBuffer
	f := &frontEnd{Server: api.NewServer(api.Options{
		Location: "south", Directory: buggyDirectory{}, Clock: clock.System{}, IDs: protocol.NewRequestIDs([32]byte{}),
		Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})}
	f.listen(t)
	a := send(t, signed(t, http.MethodGet, f.url+statsTarget, nil))
	require.Equal(t, http.StatusInternalServerError, a.status)
	require.NotContains(t, a.body, "goroutine")
	require.Equal(t, 1, strings.Count(logged.String(), "level=ERROR"), logged.String())
	require.Contains(t, logged.String(), "buggyDirectory.Resolve")
	require.Contains(t, logged.String(), "no directory")
}
