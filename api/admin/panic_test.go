package admin

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// TestPanic: a bug is answered 500 on a connection that goes on, and logged once with the
// place where it happened.
func TestPanic(t *testing.T) {
	var logged bytes.Buffer
	o := Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}
	f := newFake()
	f.bug = func() {
		var none *wire.Link
		none.DelaySeconds++
	}
	e := refused(t, ask(t, f, o, http.MethodPost, "/v1/link/heal", ""))
	require.Equal(t, http.StatusInternalServerError, e.Status)
	require.Equal(t, codeInternal, e.Code)
	require.NotContains(t, e.Message, "goroutine")
	require.Equal(t, 1, strings.Count(logged.String(), "level=ERROR"), logged.String())
	require.Contains(t, logged.String(), "panic_test.go")
}
