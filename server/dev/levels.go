package dev

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	wire "antipode/client/admin"
)

// isNew reports whether no location has begun to write in the folder dir.
func isNew(dir string) (bool, error) {
	for _, l := range order() {
		_, err := os.Stat(filepath.Join(dir, string(l)))
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// FinalizeNew raises both locations to the highest feature level that this program knows, if this cluster was made by
// it: there is no version before that a node could go back to. It does nothing to a cluster that was there before Open,
// which an operator finalizes. Both locations have to serve. After an error it may be called again; a cluster that was
// not finalized works, and its status shows that.
func (c *Cluster) FinalizeNew(ctx context.Context) error {
	if !c.made {
		return nil
	}
	_, err := c.admin.Finalize(ctx, wire.Finalize{})
	return err
}
