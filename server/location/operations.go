package location

import (
	"context"
	"time"

	"antipode/internal/clock"
	"antipode/stamp"
)

// resumeEvery is how often a location goes on with the operations of its accounts.
const resumeEvery = time.Second

// resumeOperations goes on with the operations of accounts whose primary is this location, until ctx ends: see
// directory.Directory.Resume.
func (l *Location) resumeOperations(ctx context.Context, s *stamp.Stamp) {
	said := ""
	for clock.Wait(ctx, resumeEvery) == nil {
		if s.Leader(l.o.Route.Catalog()) == nil {
			continue // The process with the catalog's leader does it.
		}
		err := l.Directory.Resume(ctx)
		if err == nil || ctx.Err() != nil {
			said = ""
		} else if why := err.Error(); why != said {
			said = why
			l.o.Logger.Info("operations of accounts wait", "location", l.o.Name, "error", err)
		}
	}
}
