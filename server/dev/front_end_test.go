package dev

import (
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/server/listen"
	"antipode/server/location"
)

// A location that starts takes no connection before its stores are open: a client or gateway that is refused one asks another
// node, while an answer of 503 would end its request.
func TestFrontEndListensOnceTheStoresAreOpen(t *testing.T) {
	between := link.New()
	defer between.Close()
	dir := t.TempDir()
	options := func(name, other geo.Location, parity geo.Timestamp) location.Options {
		o := locationOptions(dir, name, other, parity)
		o.Clock, o.Link, o.Tick, o.Logger = clock.System{}, between, testTick, slog.New(slog.NewTextHandler(io.Discard, nil))
		return o
	}
	north, south := location.New(options(North, South, 0)), location.New(options(South, North, 1))
	join(clock.System{}, between, north, south, direct)
	opened := 0
	s := location.NewServer(location.ServerOptions{Location: north, Logger: slog.Default(), Listeners: func() []listen.Listener {
		opened++
		_, err := north.Stamp()
		require.NoError(t, err)
		return nil
	}})
	require.NoError(t, s.Start(t.Context()))
	require.Equal(t, 1, opened)
	require.NoError(t, s.Stop())
}
