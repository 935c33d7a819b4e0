package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"antipode/internal/clock"
)

// errVoid means that the run's figures must not be used.
var errVoid = errors.New("the run is void")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// run parses the arguments and makes one run.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == childArgument {
		return runChild(ctx, args[1:], out)
	}
	opts, err := parse(args, out)
	if err != nil {
		return err
	}
	if whole := wholeRuns()[opts.Workload]; whole != nil {
		return whole(ctx, opts, clock.System{}, out)
	}
	if opts.Server != "" {
		return measureOwn(ctx, opts, clock.System{}, out)
	}
	return measure(ctx, opts, clock.System{}, out)
}

// parse reads the flags.
func parse(args []string, out io.Writer) (Options, error) {
	var o Options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&o.Workload, "workload", workloadInsert, "what to measure: "+workloadNames())
	f.StringVar(&o.Endpoint, "endpoint", "", "base URL of the service with the account, path style (default: the gateway's port of the service)")
	f.StringVar(&o.Account, "account", "devstoreaccount1", "account name")
	f.StringVar(&o.Key, "key", developmentKey, "account key, Base64")
	f.IntVar(&o.Concurrency, "concurrency", 16, "connections, each with one request in flight")
	f.DurationVar(&o.Duration, "duration", 0, "how long to measure (default 30s; with --bytes at most that long, 10m; each run of scrub-cost and copy-cost 6s)")
	f.Var(&o.Bytes, "bytes", "measure until this much was moved, such as 10GiB; or what recover-node (default 2GiB) scrub-cost (1GiB) and copy-cost (256MiB) load, or the tail of the log of restart (what default options allow)")
	f.DurationVar(&o.Warmup, "warmup", 2*time.Second, "how long to run before measuring")
	f.IntVar(&o.Partitions, "partitions", 1000, "partition keys to spread over; 1 is one hot partition")
	f.IntVar(&o.Rows, "rows", 10_000, "objects written first for the workloads that read; query, query-* and list count entities and blobs, in whole thousands; list-snapshots has full pages alone at whole ten thousands; batch-delete ends when they are gone")
	f.Var(&o.Size, "size", "how large a blob is that is copied, or put and read in blocks of 4 MiB: of blob-copy (default 5GiB), blob-put-blocks and blob-get-blocks (256MiB)")
	f.IntVar(&o.Depth, "depth", 0, "what is there before: of queue-*, messages that wait (those that are missing are put first); of insert, get and query-*, entities beside those of the run, in whole hundreds")
	f.DurationVar(&o.Rest, "rest", 0, "wait up to so long until the server is at rest, compactions done, before the warm-up: for what a table costs when it is not being loaded")
	f.StringVar(&o.Queue, "queue", "", "of queue-*: the queue, which is made if it does not exist (default a new one)")
	f.StringVar(&o.Table, "table", "", "of the workloads of tables: the table, which is made if it does not exist (default a new one); rows of a former run that are written again count as errors of insert")
	f.IntVar(&o.ReadBack, "read-back", 2000, "written values to read back at the end, at each location; of queue-*, zero does not ask -secondary")
	f.StringVar(&o.Admin, "admin", "http://127.0.0.1:10080", "admin URL for backlog, lag and process id; empty for none")
	f.IntVar(&o.PID, "pid", 0, "process id of the server (default: the one its status names)")
	f.StringVar(&o.Server, "server", "", "binary of the server: run antipode dev of it on a new folder in --dir, for this run alone")
	f.StringVar(&o.StopLocation, "stop-location", "", "location of the --server to stop before the run: nothing is sampled of its lag nor read back there")
	f.StringVar(&o.Dir, "dir", ".", "folder for the fdatasync probe, the stores of commit-* and the data of --server")
	f.StringVar(&o.Etcd, "etcd", "127.0.0.1:2379", "address of the etcd that commit-etcd writes to")
	f.DurationVar(&o.ScrubPeriod, "scrub-period", 10*time.Minute, "of scrub-cost: within which time the scrub reads everything")
	f.Var(&o.CopyRate, "copy-rate", "of copy-cost: how much is copied per second at most, such as 8MiB (default no bound)")
	f.IntVar(&o.Pairs, "pairs", 5, "of scrub-cost and copy-cost: pairs of runs without the scrub, or the copy, and with it")
	f.BoolVar(&o.JSON, "json", false, "print the result as one line of JSON")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("what is %q? Flags only, see --help", f.Arg(0))
	}
	f.Visit(func(given *flag.Flag) { o.durationGiven = o.durationGiven || given.Name == "duration" })
	o = o.withDefaults()
	return o, o.Validate()
}
