package location

import (
	"context"
	"time"

	"antipode/directory"
	"antipode/services/catalog"
	"antipode/stamp"
	"antipode/stamp/ranges"
)

// knownWait bounds how long a receiver that begins waits for what the location knows of its stream.
const knownWait = time.Second

// knownIncarnation returns when the incoming stream was made, as rememberIncarnation stored it last, whichever process
// received then. Zero means never.
func (l *Location) knownIncarnation(ctx context.Context, s *stamp.Stamp) (made time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, knownWait)
	defer cancel()
	err = s.Read(ctx, l.o.Route.Catalog(), func(state ranges.State) (err error) {
		made, err = catalog.StreamMade(state, l.o.Other)
		return err
	})
	return made, err
}

// rememberIncarnation stores when the incoming stream was made.
func (l *Location) rememberIncarnation(ctx context.Context, s *stamp.Stamp, made time.Time) {
	err := s.Submit(ctx, l.o.Route.Catalog(), directory.RememberStream{Origin: l.o.Other, Made: made})
	if err != nil && ctx.Err() == nil {
		l.o.Logger.Warn("cannot store which stream is known; whether the bus is wiped before this is stored goes unnoticed",
			"origin", l.o.Other, "error", err)
	}
}
