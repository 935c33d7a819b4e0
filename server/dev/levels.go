package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/feature"
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

// JustMade is the mark in a folder whose locations were made by a start that has not finalized them yet. It has the
// level that the program knew which made them: there is no version before that a node could go back to. A start that
// ends early leaves it, and the next one finalizes.
type JustMade struct{ Dir string }

func (m JustMade) path() string { return filepath.Join(m.Dir, "not-finalized") }

// Set makes the mark. It has to precede anything else of the locations in the folder.
func (m JustMade) Set() error {
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(m.path(), []byte(made()), 0o600)
}

// Has reports whether the folder has the mark of a program that knew the same level as this one. An operator finalizes
// what an earlier version made, and still has a version to go back to.
func (m JustMade) Has() (bool, error) {
	text, err := os.ReadFile(m.path())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return strings.TrimSpace(string(text)) == strings.TrimSpace(made()), err
}

// Remove removes the mark of locations that were finalized.
func (m JustMade) Remove() error {
	if err := os.Remove(m.path()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// made is the content of the mark.
func made() string { return fmt.Sprintf("made at feature level %d\n", feature.Known) }

// claimNew marks a folder that has nothing of the locations yet, if its disk has room for them, and reports whether the
// locations are new to this program.
func claimNew(o ClusterOptions) (bool, error) {
	is, err := isNew(o.Dir)
	if err != nil {
		return false, err
	}
	if err := checkDisk(o, is); err != nil {
		return false, err
	}
	m := JustMade{o.Dir}
	if is {
		if err := m.Set(); err != nil {
			return false, err
		}
	}
	return m.Has()
}

// Bounds of FinalizeNew's wait for the nodes.
const (
	levelWait = 10 * time.Second
	levelPoll = 10 * time.Millisecond
)

// FinalizeNew raises both locations to the highest feature level that this program knows, if this cluster was made by
// it: there is no version before that a node could go back to. It does nothing to a cluster that was there before Open,
// which an operator finalizes, unless the start that made it ended before this. Both locations have to serve. It returns
// once the level is active at all nodes. After an error it may be called again; a cluster that was not finalized works,
// is not ready, and its status shows that.
func (c *Cluster) FinalizeNew(ctx context.Context) error {
	if !c.made.Load() {
		return nil
	}
	if _, err := c.admin.Finalize(ctx, wire.Finalize{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, levelWait)
	defer cancel()
	for _, l := range order() {
		for c.belowLevel(l) != "" {
			if err := clock.Wait(ctx, levelPoll); err != nil {
				return fmt.Errorf("%s: %s: %w", l, c.belowLevel(l), err)
			}
		}
	}
	c.made.Store(false)
	return JustMade{c.o.Dir}.Remove()
}

// belowLevel is why a location that this program has made is not ready before its level is active at all of its nodes
// that run: they refuse what needs it. "" for a location that was there before.
func (c *Cluster) belowLevel(l geo.Location) string {
	if !c.made.Load() {
		return ""
	}
	active := c.locations[l].LevelActive()
	if active >= feature.Known {
		return ""
	}
	return fmt.Sprintf("the new location is at feature level %d until the start, or antipodectl cluster finalize, raises it to %d", active, feature.Known)
}
