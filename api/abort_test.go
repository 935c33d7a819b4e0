package api

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/internal/clock"
)

// An answer that a bug ended half way is broken off: its client must not take it for a
// whole one.
func TestPanicBreaksOffHalfAnAnswer(t *testing.T) {
	t.Parallel()
	s := NewServer(Options{Location: "south", Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{Server: s, w: echo.NewResponse(w, echo.New()), r: r, req: &protocol.Request{HTTP: r}}
		defer x.recover(s.o.Clock.Now())
		_, _ = io.WriteString(x.w, "half of it")
		x.w.Flush()
		panic("a bug")
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.Equal(t, "half of it", string(body))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
