package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"antipode/geo"
	"antipode/inspect"
)

// inspectFlags are the flags of all reports.
type inspectFlags struct {
	data, node string
	output     form
	rangeID    uint32
	o          inspect.Options
}

func inspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Look into the data folder of a node that does not run",
		Long: "Shows log, state, extents and streams of a stopped node, decoded. Nothing is changed, and a folder that a\n" +
			"process uses is refused. A damaged folder is shown as far as it is intact, with the places that are not;\n" +
			"then the exit code is 1. docs/inspect.md says how to read it.",
		Example: `  antipode inspect log --data ./antipode-data --node northcentralus-1 --range 4 --from 1000
  antipode inspect state --data ./antipode-data/northcentralus/northcentralus-1 --summary
  antipode inspect extents --data ./antipode-data --node northcentralus-2 --verify
  antipode inspect lanes --data ./antipode-data --node southcentralus-1 --output json`,
	}
	f := inspectFlags{output: formText}
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.data, "data", "./antipode-data", "data folder, or that of one node in it")
	flags.StringVar(&f.node, "node", "", "which node, where the folder holds several, such as northcentralus-1")
	flags.Uint32Var(&f.rangeID, "range", 0, "show this range alone: 1 catalog, 2 blob, 3 queue, 4 table")
	flags.VarP(&f.output, "output", "o", "text, or json: one document a line")
	flags.BoolVar(&f.o.Summary, "summary", false, "leave out single records, rows and chunks")

	log := f.report("log", "Show segments, entries, hard states and marks of the log",
		"  antipode inspect log --node northcentralus-1 --range 4 --from 1000\n  antipode inspect log --node northcentralus-1 --summary",
		func(_ context.Context, n inspect.Node, o inspect.Options, e inspect.Emit) (int, error) {
			return inspect.Log(n, o, e)
		})
	log.Flags().Uint64Var(&f.o.From, "from", 0, "show entries of this index and above")
	state := f.report("state", "Show the rows of the state store, and where each range stands",
		"  antipode inspect state --node northcentralus-1 --summary\n  antipode inspect state --node northcentralus-1 --range 4 --kind entity",
		func(_ context.Context, n inspect.Node, o inspect.Options, e inspect.Emit) (int, error) {
			return inspect.State(n, o, e)
		})
	state.Flags().StringVar(&f.o.Kind, "kind", "", "show rows of this kind alone, such as gate, head, outbox, cursor, account, container, entity, blob")
	extents := f.report("extents", "Show the extent files, their garbage, and damaged chunks",
		"  antipode inspect extents --node northcentralus-1 --verify\n  antipode inspect extents --node northcentralus-1 --chunks --output json", inspect.Extents)
	extents.Flags().BoolVar(&f.o.Verify, "verify", false, "read every byte and check every CRC")
	extents.Flags().BoolVar(&f.o.Chunks, "chunks", false, "show every chunk, not damaged ones alone")
	lanes := f.report("lanes", "Show the streams: heads and outbox, cursors and sync times",
		"  antipode inspect lanes --node northcentralus-1\n  antipode inspect lanes --node southcentralus-1 --account devstoreaccount1 --range 4",
		func(_ context.Context, n inspect.Node, o inspect.Options, e inspect.Emit) (int, error) {
			return inspect.Lanes(n, o, e)
		})
	lanes.Flags().Var(accountFlag{&f.o.Account}, "account", "show the streams of this account alone")
	return group(cmd, log, state, extents, lanes)
}

type accountFlag struct{ a *geo.Account }

func (f accountFlag) String() string     { return "" }
func (f accountFlag) Type() string       { return "name" }
func (f accountFlag) Set(s string) error { *f.a = geo.Account(s); return nil }

type reportFunc func(context.Context, inspect.Node, inspect.Options, inspect.Emit) (damaged int, err error)

func (f *inspectFlags) report(use, short, example string, r reportFunc) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout(), r) },
	}
}

func (f *inspectFlags) run(ctx context.Context, out io.Writer, r reportFunc) error {
	if ctx == nil {
		ctx = context.Background()
	}
	folder, err := openStopped(f.data)
	if err != nil {
		return err
	}
	n, err := f.choose()
	if err != nil {
		return errors.Join(err, folder.Close())
	}
	f.o.Range = geo.RangeID(f.rangeID)
	w := bufio.NewWriter(out)
	damaged, err := r(ctx, n, f.o, func(row inspect.Row) error {
		if f.output == formText {
			_, err := fmt.Fprintln(w, row.Text())
			return err
		}
		return json.NewEncoder(w).Encode(row)
	})
	if err = errors.Join(err, w.Flush(), folder.Close()); err != nil {
		return err
	}
	if damaged > 0 {
		return fmt.Errorf("%s: damaged places, shown above: %d; a node that starts on it repairs or rebuilds them from its peers", n.Dir, damaged)
	}
	return nil
}

// choose finds the node that the flags name.
func (f *inspectFlags) choose() (inspect.Node, error) {
	nodes, err := inspect.Nodes(vfs.Default, f.data)
	if err != nil {
		return inspect.Node{}, err
	}
	var names []string
	for _, n := range nodes {
		if n.Name == f.node || f.node == "" && len(nodes) == 1 {
			return n, nil
		}
		names = append(names, n.Name)
	}
	if f.node == "" {
		return inspect.Node{}, fmt.Errorf("%s holds several nodes: choose one with --node: %s", f.data, strings.Join(names, ", "))
	}
	return inspect.Node{}, fmt.Errorf("%s holds no node %s: it has %s", f.data, f.node, strings.Join(names, ", "))
}
