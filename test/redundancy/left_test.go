package redundancy

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/faults/rig"
)

// storedRow is a row as `antipode inspect state` shows it.
type storedRow struct{ Type, Kind, Key, Value string }

// rowsOf are the rows that the folder of a stopped node has of the account.
func (a *account) rowsOf(ctx context.Context, node string) (out []storedRow) {
	a.t.Helper()
	shown, err := exec.CommandContext(ctx, devproc.Binary(), "inspect", "state", "--data", filepath.Join(a.r.Dir(), node, "data"), "--output", "json").Output()
	require.NoError(a.t, err, node)
	for line := range bytes.Lines(shown) {
		var row storedRow
		require.NoError(a.t, json.Unmarshal(line, &row), "%s: %s", node, line)
		if row.Type == "row" && strings.Contains(row.Key, string(a.name)) {
			out = append(out, row)
		}
	}
	return out
}

// movesOn requires that Last Sync Time of each service passes the present while nobody writes.
func (a *account) movesOn(ctx context.Context) {
	a.t.Helper()
	began := time.Now()
	for _, s := range geo.Services {
		a.eventually(ctx, "Last Sync Time of "+s.String()+" moves on", func(ctx context.Context) bool {
			got, err := a.Secondary.Stats(ctx, s)
			return err == nil && got.Known && got.LastSyncTime.After(began)
		})
	}
}

// streamKinds are the kinds of rows that belong to a stream: its head and what was acknowledged of it, its outbox, its
// cursor, and why it stopped. How far the copy is, one row in each range, decides nothing in a later epoch (change.Image).
var streamKinds = map[string]bool{"head": true, "trimmed": true, "outbox": true, "cursor": true, "stop": true}

// requireOneEpoch stops all nodes in order, so that they store all they hold, and requires that no row of a stream of the
// account is of another epoch, nor its gate in any range. A stream that has carried something in this epoch is there.
func (a *account) requireOneEpoch(ctx context.Context, epoch wire.Epoch) {
	a.t.Helper()
	nodes := append(rig.NodesOf(rig.North), rig.NodesOf(rig.South)...)
	for _, name := range nodes {
		require.NoError(a.t, a.r.Stop(ctx, name))
	}
	for _, name := range nodes {
		found, former := map[string]int{}, map[string][]storedRow{}
		for _, row := range a.rowsOf(ctx, name) {
			of := strings.HasPrefix(row.Key, string(a.name)+"/"+epoch.String()+"/")
			switch {
			case row.Kind == "gate":
				of = strings.Contains(row.Value, "epoch "+epoch.String()+",")
			case !streamKinds[row.Kind]:
				continue
			}
			found[row.Kind]++
			if !of {
				former[row.Kind] = append(former[row.Kind], row)
			}
		}
		require.Equal(a.t, len(geo.Services)+1, found["gate"], "%s", name)
		require.NotZero(a.t, found["head"]+found["cursor"], "%s has no stream", name)
		require.Empty(a.t, former, "%s has something of an epoch before %s", name, epoch)
		a.t.Logf("%s stores of epoch %s alone: %v", name, epoch, found)
	}
	for _, name := range nodes {
		require.NoError(a.t, a.r.Launch(name))
	}
	ready, cancel := context.WithTimeout(ctx, *calmWait)
	defer cancel()
	require.NoError(a.t, a.r.Ready(ready))
}
