package natsbus

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
)

// serverLog bridges the server's logger to slog. The server's notices and warnings are for an
// operator of NATS (it warns of every start of a cluster) and go to debug; what it could trace is
// dropped. The consumer finds out what an operator of ours has to know of a stream that does not
// work.
type serverLog struct {
	log *slog.Logger
	// fatal is the first error that the server cannot start with, nil without one.
	fatal atomic.Pointer[string]
}

func (l *serverLog) Noticef(format string, v ...any) { l.write(slog.LevelDebug, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.write(slog.LevelDebug, format, v) }

// Errorf drops a level for another server that cannot be reached: the first of three to
// start finds no other.
func (l *serverLog) Errorf(format string, v ...any) {
	level := slog.LevelWarn
	if strings.HasPrefix(format, "Error trying to connect to route") {
		level = slog.LevelDebug
	}
	l.write(level, format, v)
}

// Fatalf does not end the process: an embedded server that fails is a bus
// that is unavailable.
func (l *serverLog) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.fatal.CompareAndSwap(nil, &text)
	l.write(slog.LevelError, format, v)
}

func (l *serverLog) Debugf(string, ...any) {}
func (l *serverLog) Tracef(string, ...any) {}

func (l *serverLog) write(level slog.Level, format string, v []any) {
	ctx := context.Background()
	if l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, "jetstream: "+fmt.Sprintf(format, v...))
	}
}
