package sites

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/cluster"
	"antipode/stamp/membership"
	"antipode/test/devproc"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
)

// R4: a node that is given the folder of the node of its number at the other location ends, with one line that names both,
// and changes nothing there; so do all nodes of two locations whose folders were exchanged. With its own folder each goes
// on, and nothing is missing. The first exchange alone is played for each change.
func TestR4FoldersOfTheOtherLocation(t *testing.T) {
	s := &site{t: t, r: rig.StartTest(t, nil)}
	ctx := t.Context()
	s.setup(ctx)
	var writes ledger.Ledger
	s.write(ctx, &writes, 40)
	exchanges := []int{1}
	if *whole {
		exchanges = []int{1, rig.Nodes}
	}
	for _, nodes := range exchanges {
		north, south := rig.NodesOf(rig.North)[:nodes], rig.NodesOf(rig.South)[:nodes]
		for i := range nodes {
			require.NoError(t, s.r.Kill(north[i]))
			require.NoError(t, s.r.Kill(south[i]))
			require.NoError(t, s.r.ExchangeDisks(north[i], south[i]))
		}
		for i := range nodes {
			for _, swap := range [][2]string{{north[i], south[i]}, {south[i], north[i]}} {
				s.refuses(ctx, swap[0], "belongs to node "+swap[1]+", not to "+swap[0])
			}
		}
		for i := range nodes {
			require.NoError(t, s.r.ExchangeDisks(north[i], south[i]))
			require.NoError(t, s.r.LaunchAll(north[i], south[i]))
		}
		s.ready(ctx)
		s.kept(ctx, &writes)
		s.write(ctx, &writes, 20)
	}
	s.arrived(ctx, &writes)
	s.agrees(ctx)
}

// refuses starts a process, which has to end with one last line that has a part.
func (s *site) refuses(ctx context.Context, name, part string) {
	s.t.Helper()
	before := s.folder(name)
	ctx, cancel := context.WithTimeout(ctx, calmWait)
	defer cancel()
	output, err := s.r.LaunchEnds(ctx, name)
	require.NoError(s.t, err)
	lines := strings.Split(strings.TrimSpace(output), "\n")
	require.Contains(s.t, lines[len(lines)-1], part)
	require.Equal(s.t, before, s.folder(name), "the folder was changed")
}

// folder are the names, sizes and times of the files that a stopped process has on its disks.
func (s *site) folder(name string) (files []string) {
	s.t.Helper()
	require.NoError(s.t, fs.WalkDir(os.DirFS(filepath.Join(s.r.Dir(), name, "data")), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			files = append(files, fmt.Sprint(file, " ", info.Size(), " ", info.ModTime()))
		}
		return err
	}))
	return files
}

// R4: the folder of a cluster is copied while it runs. To stop the copy ends no process of the original, and says whose
// they are; the original is stopped by its own folder.
func TestCopyOfAClusterIsStopped(t *testing.T) {
	onlyWhole(t)
	base, err := devproc.FindPortBase(t, func(base int) []string { return cluster.Options{PortBase: base}.Ports() })
	require.NoError(t, err)
	o := cluster.Options{Dir: filepath.Join(t.TempDir(), "original"), PortBase: base, Binary: devproc.Binary()}
	ctx, cancel := context.WithTimeout(t.Context(), calmWait)
	defer cancel()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), calmWait)
		defer cancel()
		require.NoError(t, cluster.Stop(ctx, o))
	})
	require.NoError(t, cluster.Start(ctx, o))
	pids := func() map[string]int {
		out := map[string]int{}
		for _, name := range rig.All() {
			pid, err := o.PID(name)
			require.NoError(t, err)
			out[name] = pid
		}
		return out
	}
	running := pids()
	require.NotContains(t, running, 0)
	copied := filepath.Join(t.TempDir(), "copy")
	said, err := exec.CommandContext(ctx, "cp", "-a", o.Dir, copied).CombinedOutput() // As an operator would.
	for line := range strings.Lines(string(said)) {
		require.Contains(t, line, "No such file or directory", "other than files that went meanwhile: %v", err)
	}
	said, err = exec.CommandContext(ctx, devproc.Binary(), "cluster", "stop", "--dir", copied).CombinedOutput()
	require.Error(t, err, "%s", said)
	require.Contains(t, string(said), copied+" is a copy of "+o.Dir)
	require.Equal(t, running, pids(), "processes of the original were ended: %s", said)
	require.NoError(t, exec.CommandContext(ctx, devproc.Binary(), "cluster", "stop", "--dir", o.Dir).Run())
	for name, pid := range pids() {
		require.Zero(t, pid, name)
	}
}

// R4: a node has the folder of the node of its name in another installation. It takes no part: writes go on with the other
// two, and a warning names both stamps. With its own folder it is in sync again, and nothing is missing.
func TestR4FolderOfAnotherInstallation(t *testing.T) {
	onlyWhole(t)
	ctx := t.Context()
	name := rig.NodesOf(rig.North)[0]
	foreign, theirs := anotherInstallation(ctx, t, name)
	s := startWhole(t, nil)
	var writes ledger.Ledger
	s.write(ctx, &writes, 40)
	require.NoError(t, s.r.Kill(name))
	own := filepath.Join(t.TempDir(), name)
	require.NoError(t, s.r.CopyDisks(name, own))
	ours := stampOf(t, own)
	require.NotEqual(t, ours, theirs)
	require.NoError(t, s.r.SwapDisks(name, foreign))
	require.NoError(t, s.r.Launch(name))
	s.eventually(ctx, "a warning names both stamps", func(ctx context.Context) bool {
		status, err := s.r.Admin(rig.Gateway).Status(ctx)
		if err != nil {
			return false
		}
		for _, l := range status.Locations {
			for _, line := range l.Warnings {
				if strings.Contains(line, "has a folder of stamp") && strings.Contains(line, ours) && strings.Contains(line, theirs) {
					return true
				}
			}
		}
		return false
	})
	s.write(ctx, &writes, 40)
	views, err := s.r.Views(ctx, rig.North)
	require.NoError(t, err)
	for _, v := range views {
		require.NotNil(t, v.LeaderView, "range %d", v.Range)
		require.NotEqual(t, name, v.Leader)
		for _, st := range v.Standings {
			require.False(t, st.Node == name && st.InSync, "%s is in sync in range %d", name, v.Range)
		}
	}
	require.NoError(t, s.r.Kill(name))
	require.NoError(t, s.r.SwapDisks(name, own))
	require.NoError(t, s.r.Launch(name))
	s.ready(ctx)
	s.kept(ctx, &writes)
	s.arrived(ctx, &writes)
	s.agrees(ctx)
}

// anotherInstallation makes one, ends it, and returns the disks of its node of a name, and how its stamp begins.
func anotherInstallation(ctx context.Context, t *testing.T, name string) (disks, stamp string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, calmWait)
	defer cancel()
	other, err := rig.Start(ctx, rig.Options{Binary: devproc.Binary(), Dir: t.TempDir()})
	require.NoError(t, err)
	disks = filepath.Join(t.TempDir(), name)
	err = other.Kill(name)
	if err == nil {
		err = other.CopyDisks(name, disks)
	}
	require.NoError(t, other.Close())
	require.NoError(t, err)
	return disks, stampOf(t, disks)
}

// stampOf is how the stamp of a copy of the first node's disks of the north begins.
func stampOf(t *testing.T, disks string) string {
	t.Helper()
	const first geo.NodeID = 1
	f, err := membership.ClaimFolder(vfs.Default, filepath.Join(disks, string(rig.North), wire.NodeName(rig.North, first)), rig.North, first)
	require.NoError(t, err)
	require.False(t, f.Stamp().IsZero())
	return f.Stamp().Short()
}
