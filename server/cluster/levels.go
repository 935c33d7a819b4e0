package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	wire "antipode/client/admin"
	"antipode/server/dev"
)

// isNew reports whether Start has not made anything of the nodes in the folder yet: the cluster is then of this program
// alone.
func (o Options) isNew() bool {
	return !slices.ContainsFunc(o.nodeNames(), func(n node) bool {
		_, err := os.Stat(o.folder(n.name()))
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// justMade is the mark in the folder of a cluster that a start has made.
func (o Options) justMade() dev.JustMade { return dev.JustMade{Dir: o.Dir} }

// FinalizeNew raises both locations to the highest feature level that all nodes know, if Start of this program has made
// them, also if that one ended before it came to this. An operator finalizes any other cluster. After an error it may be
// called again.
func FinalizeNew(ctx context.Context, o Options) error {
	made, err := o.justMade().Has()
	if err != nil || !made {
		return err
	}
	if _, err := o.Admin().Finalize(ctx, wire.Finalize{}); err != nil {
		return err
	}
	return o.justMade().Remove()
}
