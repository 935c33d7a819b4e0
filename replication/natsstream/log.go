package natsstream

import (
	"context"
	"fmt"
	"log/slog"
)

// serverLog bridges the server's logger to slog. The server's notices are for an
// operator of NATS and go to debug; what it could trace is dropped.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(format string, v ...any) { l.write(slog.LevelDebug, format, v) }
func (l serverLog) Warnf(format string, v ...any)   { l.write(slog.LevelWarn, format, v) }
func (l serverLog) Errorf(format string, v ...any)  { l.write(slog.LevelError, format, v) }

// Fatalf does not end the process: an embedded server that fails is a carrier
// that is unavailable.
func (l serverLog) Fatalf(format string, v ...any) { l.write(slog.LevelError, format, v) }
func (l serverLog) Debugf(string, ...any)          {}
func (l serverLog) Tracef(string, ...any)          {}

func (l serverLog) write(level slog.Level, format string, v []any) {
	ctx := context.Background()
	if l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, "jetstream: "+fmt.Sprintf(format, v...))
	}
}
