package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
)

// fillTable writes the entities that a table has before the run, by transactions. Their RowKeys are longer than those
// of the run, so they are others.
func fillTable(ctx context.Context, o Options, workers []*worker) error {
	ctx, cancel := context.WithTimeout(ctx, preloadWait)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for i, w := range workers {
		objects := newBatches(o, w.name, scanBatches)
		g.Go(func() error { return w.writeAll(ctx, objects, share(o.Depth/batchEntities, i, len(workers))) })
	}
	return g.Wait()
}

// preload writes the objects that will be read.
func (w *worker) preload(ctx context.Context) error {
	err := w.writeAll(ctx, w.objects, w.preloads)
	w.next = w.preloads
	return err
}

// writeAll writes the first n objects of a worker, each until it is acknowledged.
func (w *worker) writeAll(ctx context.Context, to objects, n int) error {
	for done := 0; done < n; {
		a, _, _, err := w.send(ctx, to.write(object{w.id, done}))
		problem := outcome(a, err)
		if problem == "" || strings.HasPrefix(problem, "409") { // Written, but the answer was lost.
			done++
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("writing the rows to read: %s: %w", problem, errors.Join(err, ctx.Err()))
		}
		pause(ctx, retryPause)
	}
	return nil
}
