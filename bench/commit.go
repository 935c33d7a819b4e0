package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/internal/clock"
)

// The workloads that commit 1 KiB below the protocol: what a commit costs on three
// replicas, beside what others reach on the same disk. commit-pebble is the floor:
// three Pebbles, each with its log, a synced batch in each at the same time.
const (
	commitPebble  = "commit-pebble"
	commitStamp   = "commit-stamp"   // three nodes in this process
	commitNetwork = "commit-network" // three nodes that talk over TLS on loopback
	commitEtcd    = "commit-etcd"    // the etcd at --etcd, of one member or three
)

// committer commits values. commit is called concurrently, and returns when the value
// is durable on all replicas that must have it.
type committer interface {
	commit(ctx context.Context, key, value []byte) error
	io.Closer
}

func committers() map[string]func(ctx context.Context, o Options, dir string) (committer, error) {
	return map[string]func(ctx context.Context, o Options, dir string) (committer, error){
		commitPebble: openPebbles, commitStamp: openStamp, commitNetwork: openNetwork, commitEtcd: openEtcd,
	}
}

// commitBytes is the length of a value.
const commitBytes = 1 << 10

// measureCommits measures commits of --concurrency callers, each with one under way.
func measureCommits(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error {
	return inFolder(o, func(dir string) error { return commits(ctx, o, dir, clk, out) })
}

func commits(ctx context.Context, o Options, dir string, clk clock.Clock, out io.Writer) (err error) {
	c, err := committers()[o.Workload](ctx, o, dir)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Workload, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	began := clk.Now()
	window := span{start: began.Add(o.Warmup), end: began.Add(o.Warmup + o.Duration)}
	recs := make([]*recorder, o.Concurrency)
	g, ctx := errgroup.WithContext(ctx)
	for i := range recs {
		recs[i] = newRecorder()
		g.Go(func() error { return commitLoop(ctx, c, clk, i, o.Partitions, window, recs[i]) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("%s: %w", o.Workload, err)
	}
	total := newRecorder()
	for _, r := range recs {
		total.merge(r)
	}
	_, err = fmt.Fprintf(out, "%s: %d callers, %.0f s\n  rate      %.0f commits/s\n  latency   p50 %.3f ms, p99 %.3f ms, max %.1f ms\n",
		o.Workload, o.Concurrency, o.Duration.Seconds(), float64(total.ops)/o.Duration.Seconds(),
		ms(total.percentile(0.5)), ms(total.percentile(0.99)), ms(total.max))
	return err
}

// commitLoop commits one value after the other, spread over the partitions, and records those
// within the window. The first error ends the run, since a figure with errors means nothing.
func commitLoop(ctx context.Context, c committer, clk clock.Clock, worker, partitions int, window span, rec *recorder) error {
	value := make([]byte, commitBytes)
	for n := 0; ; n++ {
		binary.LittleEndian.PutUint64(value, uint64(worker)<<32|uint64(n))
		key := fmt.Appendf(nil, "p%05d", object{worker, n}.partition(partitions))
		began := clk.Now()
		if began.After(window.end) {
			return nil
		}
		if err := commitOne(ctx, c, key, value); err != nil {
			return err
		}
		if ended := clk.Now(); !began.Before(window.start) && !ended.After(window.end) {
			rec.ok(ended.Sub(began), commitBytes)
		}
	}
}

func commitOne(ctx context.Context, c committer, key, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, commitMax)
	defer cancel()
	return c.commit(ctx, key, value)
}

// commitMax bounds one commit.
const commitMax = 10 * time.Second
