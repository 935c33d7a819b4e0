package main

import (
	"context"
	"fmt"
	"net/http"
)

// workloadSnapshots measures 1,000 entries of List Blobs with include=snapshots, among --rows blobs of 1 KiB. A page
// that the server ends sooner is continued.
const workloadSnapshots = "list-snapshots"

// snapshotEvery is how many blobs there are to one that has a snapshot.
const snapshotEvery = 10

// snapshots are listed blobs, some of which have a snapshot.
type snapshots struct {
	listed
	list
}

func newSnapshots(o Options, b blobs) operation {
	entries := o.Rows + (o.Rows+snapshotEvery-1)/snapshotEvery
	return &snapshots{
		listed{b, o.Concurrency},
		list{name: b.name, pages: (entries + scanItems - 1) / scanItems, entries: entries, snapshots: true},
	}
}

func (s *snapshots) ready(ctx context.Context, w *worker) error {
	rows := s.entries - (s.entries+snapshotEvery)/(snapshotEvery+1)
	w.preloads = share(rows, w.id, s.workers)
	if err := w.preload(ctx); err != nil {
		return err
	}
	for n := range w.preloads {
		if (n*s.workers+w.id)%snapshotEvery > 0 {
			continue
		}
		if _, _, err := w.exactly(ctx, s.snapshot(object{w.id, n})); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshots) snapshot(o object) *call {
	return &call{
		method: http.MethodPut, path: s.path(o), query: "comp=snapshot", canonical: "\ncomp:snapshot",
		status: http.StatusCreated, blob: true,
	}
}

func (s *snapshots) perform(ctx context.Context, w *worker) (took span, moved int, err error) {
	took.start = w.clock.Now()
	for more := true; more; {
		a, one, err := w.exactly(ctx, s.next())
		if err != nil {
			return took, 0, err
		}
		if more, err = s.list.check(a); err != nil {
			return took, 0, fmt.Errorf("%w: %w", errVoid, err)
		}
		moved += len(a.body)
		took.end = one.end
	}
	return took, moved, nil
}

// check is that of a blob which is read back.
func (s *snapshots) check(o object, body []byte) error { return s.blobs.check(o, body) }
