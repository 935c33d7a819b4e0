package natsbus

import (
	"context"
	"time"
)

// roomEvery is how often Options.Closed is asked. Messages published in between must fit beside the reserve of the
// disk.
const roomEvery = 500 * time.Millisecond

// watchRoom closes the stream while there is no room for it, and opens it again, until ctx ends.
func (q *Consumer) watchRoom(ctx context.Context) {
	look := time.NewTicker(roomEvery)
	defer look.Stop()
	for closed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		now, attached := q.o.Closed(), q.attachments.Swap(0)
		switch {
		case now == closed && attached == 0:
			continue
		case !q.bound(ctx):
			q.attachments.Add(1)
			continue
		case now && !closed:
			q.o.Log.Error("stream closed: the disk that stores it is nearly full; the outbox of the source holds what comes, "+
				"until there is more room: docs/runbooks/disk-nearly-full.md", "source", q.o.Source)
		case closed && !now:
			q.o.Log.Warn("stream open again: its disk has room", "source", q.o.Source)
		}
		closed = now
	}
}

// bound gives the stream the bound that it should have now, and reports whether that worked. An attachment does the same.
func (q *Consumer) bound(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	_, err := ensure(ctx, q.c, q.o)
	return err == nil
}
