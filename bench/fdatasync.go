package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"antipode/internal/clock"
)

const (
	// syncBlock is what each write of the probe adds, in bytes, and syncFile the
	// size at which it begins again at the front: the file is written once before,
	// since a growing file doubles the cost of each fdatasync.
	syncBlock = 4 << 10
	syncFile  = 16 << 20
)

// probeSync measures how many writes of 4 KiB, each followed by fdatasync, the
// disk under --dir takes in a second: alone, and over --concurrency files at once.
func probeSync(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error {
	total := newRecorder()
	recs := make([]*recorder, o.Concurrency)
	g, ctx := errgroup.WithContext(ctx)
	for i := range recs {
		recs[i] = newRecorder()
		g.Go(func() error { return syncLoop(ctx, o, clk, recs[i]) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, r := range recs {
		total.merge(r)
	}
	rate := float64(total.ops) / o.Duration.Seconds()
	_, err := fmt.Fprintf(out, "fdatasync: %d files, %.0f s\n  rate      %.0f /s\n  latency   p50 %.3f ms, p99 %.3f ms, max %.1f ms\n",
		o.Concurrency, o.Duration.Seconds(), rate, ms(total.percentile(0.5)), ms(total.percentile(0.99)), ms(total.max))
	return err
}

func syncLoop(ctx context.Context, o Options, clk clock.Clock, rec *recorder) (err error) {
	f, err := os.CreateTemp(o.Dir, "fdatasync")
	if err != nil {
		return fmt.Errorf("fdatasync probe: %w", err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if removeErr := os.Remove(f.Name()); err == nil {
			err = removeErr
		}
	}()
	if _, err := f.Write(make([]byte, syncFile)); err != nil {
		return fmt.Errorf("fdatasync probe: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("fdatasync probe: %w", err)
	}
	block := make([]byte, syncBlock)
	end := clk.Now().Add(o.Duration)
	for at := int64(0); ctx.Err() == nil; at = (at + syncBlock) % syncFile {
		block[0]++
		began := clk.Now()
		if began.After(end) {
			return nil
		}
		if _, err := f.WriteAt(block, at); err != nil {
			return fmt.Errorf("fdatasync probe: %w", err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return fmt.Errorf("fdatasync probe: %w", err)
		}
		rec.ok(clk.Now().Sub(began), syncBlock)
	}
	return ctx.Err()
}
