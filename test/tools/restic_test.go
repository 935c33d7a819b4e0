package tools

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/test/faults/rig"
	"antipode/test/rest"
)

// backups is the account: restic takes that of developers for an emulator, at ports that it does not ask for.
const backups = geo.Account("backups")

// restic keeps backups at the primary and restores them, and restores them from -secondary alone once the processes of
// the primary location are killed.
func TestRestic(t *testing.T) {
	needTools(t)
	r := rig.StartTest(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), toolWait)
	defer cancel()
	_, err := r.Admin(rig.Gateway).CreateAccount(ctx, admin.NewAccount{
		Name: backups, Location: rig.North, Key1: rest.DevKey, Key2: rest.DevKey, Ensure: true,
	})
	require.NoError(t, err)
	secondary := r.ClientOf(rig.Gateway, backups, true)
	arrived := func(after time.Time) {
		require.Eventually(t, func() bool {
			stats, err := secondary.Stats(ctx, geo.Blob)
			return err == nil && stats.Known && stats.LastSyncTime.After(after)
		}, startWait, 100*time.Millisecond, "everything is at the secondary")
	}
	arrived(time.Now()) // Not before the account is at both locations.
	f := newRelay(t, r.BlobPort(rig.Gateway))
	restic := program{name: "restic", path: "/usr/bin/restic", relay: f, env: append(f.secure(),
		"AZURE_ACCOUNT_NAME="+string(backups), "AZURE_ACCOUNT_KEY="+rest.DevKey, "RESTIC_PASSWORD=secret",
		"RESTIC_REPOSITORY=azure:backups:/", "RESTIC_CACHE_DIR="+t.TempDir())}
	version := restic.must(t, "version")
	restic.name = strings.Join(strings.Fields(version)[:2], " ")
	tree := newTree(t)
	restic.must(t, "init")
	restic.must(t, "backup", tree)
	change(t, tree)
	restic.must(t, "backup", tree)
	restic.must(t, "check", "--read-data")
	restic.must(t, "forget", "--keep-last", "1", "--prune")
	restic.must(t, "check", "--read-data")
	restore(t, restic, tree, nil)

	arrived(time.Now())
	for _, name := range rig.NodesOf(rig.North) {
		require.NoError(t, r.Kill(name))
	}
	f.toSecondary()
	restore(t, restic, tree, []string{"--no-lock", "--no-cache"})
	restic.must(t, "check", "--no-lock", "--no-cache", "--read-data")
}

// restore restores the latest backup and compares it with the tree.
func restore(t *testing.T, restic program, tree string, options []string) {
	t.Helper()
	back := t.TempDir()
	restic.must(t, append([]string{"restore", "latest", "--target", back}, options...)...)
	requireSame(t, tree, filepath.Join(back, tree))
}
