package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/command"
)

// resumption is what fork resume prints.
type resumption struct {
	Ended []admin.Resumed `json:"ended"`
}

func (t *tool) forkResume() *cobra.Command {
	return &cobra.Command{
		Use:   "resume STREAM",
		Short: "Let a stream go on that stopped for a record that could not be decoded",
		Long: `resume ends the stops of a stream whose reason is version or poison, at both locations,
for instance after the location that could not decode a record was upgraded. If the record
still cannot be decoded, the stream stops again within seconds. A stream that is forked or
lost stays stopped: its two copies differ.`,
		Example: `  antipodectl fork list
  antipodectl fork resume pictures/1@northcentralus/r4/l17`,
		Args: exactly("STREAM"),
		RunE: answer(t, func(ctx context.Context, args []string) (resumption, error) { return t.resume(ctx, args[0]) }, writeResumed),
	}
}

// resume ends the stops of a stream at all locations that keep one, the source's first: while it keeps one,
// its answer to the receiver's next cursor stops the stream there again.
func (t *tool) resume(ctx context.Context, stream string) (out resumption, err error) {
	all, err := t.client.Forks(ctx)
	if err != nil {
		return out, err
	}
	found := slices.DeleteFunc(all.Forks, func(f admin.Fork) bool { return f.Stream != stream })
	if len(found) == 0 {
		return out, command.Wrong(fmt.Errorf("no stream %q is stopped: antipodectl fork list shows them", stream))
	}
	slices.SortFunc(found, func(x, y admin.Fork) int { return cmp.Compare(y.Side, x.Side) })
	for _, f := range found {
		ended, err := t.client.Resume(ctx, f.Location, f.Name())
		if err != nil {
			return out, err
		}
		out.Ended = append(out.Ended, ended)
	}
	return out, nil
}

func writeResumed(w io.Writer, r resumption) {
	for _, e := range r.Ended {
		_, _ = fmt.Fprintf(w, "%s goes on at %s: it was stopped there for the reason %s\n", e.Stream, e.Location, e.Reason)
	}
}
