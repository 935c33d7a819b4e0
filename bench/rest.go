package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/internal/clock"
)

const (
	// restSample is how long the processor time of the server is watched at a time, restSamples how many of them in
	// a row are at rest. Longer than the pauses between two compactions.
	restSample  = time.Second
	restSamples = 5
	// restBusy is the share of one processor below which a server is at rest. Six nodes that do nothing use a fifth
	// of it: leases and records of streams go on.
	restBusy = 0.5
)

// quiet counts the samples in a row in which a server was at rest.
type quiet int

// sample takes the processors used in one more sample, and reports whether the server is at rest.
func (q *quiet) sample(processors float64) bool {
	if *q++; processors > restBusy {
		*q = 0
	}
	return *q >= restSamples
}

// awaitRest waits until the server has done what the rows of a run left to do: shipping, and the compactions of all
// stores. Its error is that it was not done within limit.
func (s *server) awaitRest(ctx context.Context, clk clock.Clock, limit time.Duration) error {
	if limit == 0 {
		return nil
	}
	began := clk.Now()
	var q quiet
	for {
		before, err := s.usage()
		if err != nil {
			return err
		}
		start := clk.Now()
		pause(ctx, restSample)
		after, err := s.usage()
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		used := (after.server - before.server).Seconds() / clk.Now().Sub(start).Seconds()
		switch {
		case q.sample(used):
			return nil
		case clk.Now().Sub(began) > limit:
			return fmt.Errorf("after %v the server still uses %.2f processors: give --rest more", limit, used)
		}
	}
}
