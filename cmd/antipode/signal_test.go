package main

import (
	"bytes"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process whose output nobody reads stops with the first signal, and exits with the second one or at the end of its time.
func TestSignalsWaitForNoOutput(t *testing.T) {
	for _, within := range []time.Duration{time.Hour, time.Millisecond} {
		r, out := io.Pipe() // A write waits for a reader.
		signals, stopped, exits := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
		go func() {
			untilExit(out, within, signals, func() { close(stopped) })
			close(exits)
		}()
		signals <- syscall.SIGTERM
		<-stopped
		if within == time.Hour {
			signals <- syscall.SIGTERM
		}
		<-exits
		require.NoError(t, r.Close())
	}
}

// locked is a buffer that one goroutine may write and another read.
type locked struct {
	mu sync.Mutex
	bytes.Buffer
}

// Write implements io.Writer.
func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}

// A process that does not stop within its time names that, and exits.
func TestEndOfTimeIsNamed(t *testing.T) {
	var out locked
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	untilExit(&out, time.Millisecond, signals, func() {})
	out.mu.Lock()
	defer out.mu.Unlock()
	require.Equal(t, "Stopping: draining requests. Once more to exit at once.\nNot stopped after 1ms: exits.\n", out.String())
}
