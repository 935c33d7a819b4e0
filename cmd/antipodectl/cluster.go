package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/geo"
)

func (t *tool) clusterCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:     "cluster",
		Short:   "Finalize an upgrade",
		Example: "  antipodectl cluster finalize",
	})
	c.AddCommand(t.clusterFinalize())
	return c
}

func (t *tool) clusterFinalize() *cobra.Command {
	var level *uint32
	var without []string
	c := &cobra.Command{
		Use:   "finalize",
		Short: "Let both locations use what an upgrade brought; no node can go back after that",
		Long: `finalize ends an upgrade: both locations are raised to the highest feature level that the
programs of all their nodes know, and may write what it brought. Until then every node can go
back to the version before, and after it none: a program that does not know the level stops
with one line and changes nothing.

It refuses while a node of either location does not run or runs a version that does not know
the level. It needs the admin port of the gateway, or of antipode dev, which see both
locations. It may be given again after any failure.`,
		Example: `  antipodectl status
  antipodectl cluster finalize
  antipodectl cluster finalize --without northcentralus-3`,
		Args: exactly(),
	}
	c.RunE = answer(t, func(ctx context.Context, _ []string) (admin.Finalized, error) {
		in := admin.Finalize{Without: without}
		if c.Flags().Changed("level") {
			in.Level = level
		}
		return t.client.Finalize(ctx, in)
	}, func(w io.Writer, f admin.Finalized) {
		if !f.Raised {
			_, _ = fmt.Fprintf(w, "nothing to finalize: %s at feature level %d already\n", areAt(f.Locations), f.Level)
			return
		}
		_, _ = fmt.Fprintf(w, "finalized: %s at feature level %d; no node can go back to a version that does not know it\n", areAt(f.Locations), f.Level)
	})
	level = c.Flags().Uint32("level", 0, "`LEVEL` to finalize at (default: the highest that all nodes know)")
	c.Flags().StringArrayVar(&without, "without", nil, "a `NODE` that is away for long and need not be seen; may be repeated")
	return c
}

// areAt is what a sentence about the levels of locations begins with.
func areAt(locations []geo.Location) string {
	names := make([]string, len(locations))
	for i, l := range locations {
		names[i] = string(l)
	}
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, " and ") + " are"
}
