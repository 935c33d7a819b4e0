package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"golang.org/x/sync/errgroup"

	"antipode/internal/clock"
)

// readers is the number of connections that read back.
const readers = 16

// readCount is the number of values read back.
type readCount struct {
	Primary   int `json:"primary"`
	Secondary int `json:"secondary"`
	// Written is the number that could have been.
	Written int `json:"written"`
}

// readBack reads a sample of what was written, each worker's last object
// included, at the primary and then at -secondary, where a value may still be on
// its way.
func readBack(ctx context.Context, o Options, clk clock.Clock, workers []*worker) (readCount, error) {
	objects, written := choose(o.ReadBack, workers)
	count := readCount{Written: written}
	ctx, cancel := context.WithTimeout(ctx, o.arriveWait)
	defer cancel()
	for _, secondary := range []bool{false, true} {
		if secondary && o.StopLocation != "" {
			break
		}
		n, err := readAll(ctx, o, clk, workers[0].name, objects, secondary)
		if secondary {
			count.Secondary = n
		} else {
			count.Primary = n
		}
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

// choose draws up to n of the acknowledged objects.
func choose(n int, workers []*worker) (objects []object, written int) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, w := range workers {
		acked := w.next - len(w.failed)
		written += acked
		for range min(n/len(workers)+1, acked) {
			o := object{w.id, rng.IntN(w.next)}
			if len(objects)%8 == 0 {
				o.n = w.next - 1
			}
			if len(objects) < n && !w.failed[o.n] {
				objects = append(objects, o)
			}
		}
	}
	return objects, written
}

// readAll reads objects over a few connections and returns how many were right.
func readAll(ctx context.Context, o Options, clk clock.Clock, name string, objects []object, secondary bool) (int, error) {
	t, err := newTarget(o, secondary)
	if err != nil {
		return 0, err
	}
	good := make([]int, readers)
	g, ctx := errgroup.WithContext(ctx)
	for i := range readers {
		w := newWorker(o, t, name, i, clk)
		g.Go(func() error {
			defer w.close()
			for at := i; at < len(objects); at += readers {
				if err := w.readOne(ctx, objects[at], secondary); err != nil {
					return err
				}
				good[i]++
			}
			return nil
		})
	}
	err = g.Wait()
	sum := 0
	for _, n := range good {
		sum += n
	}
	return sum, err
}

// readOne reads an object and checks it. At the secondary it waits for it.
func (w *worker) readOne(ctx context.Context, o object, secondary bool) error {
	for {
		a, _, _, err := w.send(ctx, w.read(o))
		problem := outcome(a, err)
		if problem == "" {
			err := w.check(o, a.body)
			if !errors.Is(err, errAbsent) {
				return err
			}
			problem = err.Error()
		}
		if !secondary || ctx.Err() != nil {
			return fmt.Errorf("reading back %v (secondary %t): %s", o, secondary, problem)
		}
		pause(ctx, retryPause)
	}
}
