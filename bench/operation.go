package main

import (
	"context"
	"errors"
	"fmt"
)

// operation is a timed operation that takes other requests before it, or more than one, or an answer that must have one
// status. An answer that is not as expected ends the run without figures.
type operation interface {
	objects
	// ready makes what the connection of w needs before the run.
	ready(ctx context.Context, w *worker) error
	// perform makes one operation. Preparations for it are not within the span that it returns.
	perform(ctx context.Context, w *worker) (took span, moved int, err error)
}

// exactly makes a call whose answer must have the call's status.
func (w *worker) exactly(ctx context.Context, c *call) (a answer, took span, err error) {
	a, took.start, took.end, err = w.send(ctx, c)
	if problem := outcome(a, err); problem != "" {
		answered := fmt.Errorf("%w: %s %s?%s: %s, not status %d", errVoid, c.method, c.path, c.query, problem, c.status)
		err = errors.Join(answered, err, bodyError(a))
	}
	return a, took, err
}

// perform makes one operation and records it if it lies within the window.
func (w *worker) perform(ctx context.Context, window span) {
	took, moved, err := w.operation.perform(ctx, w)
	if err != nil {
		w.failure = err
		return
	}
	w.record(ctx, window, took, "", moved)
}
