package dev

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/tables"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

// childEnv makes this test binary a server to be killed: folder and port base.
const (
	childDir  = "ANTIPODE_TEST_CHILD_DIR"
	childPort = "ANTIPODE_TEST_CHILD_PORT"
)

// TestChildServer is no test: it is the process that TestKilledProcess kills.
func TestChildServer(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(childDir)
	if dir == "" {
		return
	}
	base, err := strconv.Atoi(os.Getenv(childPort))
	require.NoError(t, err)
	c, err := Open(ClusterOptions{
		Dir: dir, Host: "127.0.0.1", PortBase: base, Tick: testTick,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context()))
	require.NoError(t, c.EnsureAccount(t.Context(), North, "northacct", key64, key64))
	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	fmt.Println("ready")
	select {} // Until killed.
}

// startChild starts the process and waits until it serves.
func startChild(t *testing.T, dir string, base int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildServer$")
	cmd.Env = append(os.Environ(), childDir+"="+dir, childPort+"="+strconv.Itoa(base))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ready := make(chan bool, 1)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			if s.Text() == "ready" {
				ready <- true
			}
		}
	}()
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the child process did not get ready")
	}
	return cmd
}

// Three replicas in fact (invariant 1): after 1,000 acknowledged writes
// and kill -9, each of the three folders, opened alone and read-only, holds every one.
//
// Capability: The primary location: Three replicas.
func TestKilledProcessLeavesThreeReplicas(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), freeBase(t)
	cmd := startChild(t, dir, base)
	p := Ports{"127.0.0.1", base}
	a := call(t, p, "northacct", http.MethodPost, "/northacct/Tables", `{"TableName":"tbl"}`)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	const writes, clients = 1000, 16
	var wg sync.WaitGroup
	for w := range clients {
		wg.Go(func() {
			for i := w; i < writes; i += clients {
				a, err := try(p, "northacct", http.MethodPut, entityPath("northacct", "", fmt.Sprintf("k%d", i)), fmt.Sprintf(`{"v":"%d"}`, i))
				if unanswered(a, err) {
					i -= clients
					continue
				}
				if err != nil || a.status != http.StatusNoContent {
					t.Errorf("write %d: %v %s", i, err, a.body)
				}
			}
		})
	}
	wg.Wait()
	operator, err := wire.New("http://"+p.Admin(), nil)
	require.NoError(t, err)
	eventually(t, "three are in sync", func() bool { // As they are unless the machine starves.
		status, err := operator.Status(t.Context())
		return err == nil && slices.ContainsFunc(status.Locations[0].Ranges, func(r wire.Range) bool {
			return r.Service == geo.Table.String() && r.LeaderView != nil && r.InSyncReplicas == nodesPerLocation
		})
	})
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // Killed: its error says so.

	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		held := openAlone(t, filepath.Join(dir, string(North), node.Name(North, id)))
		g := held.generation(t)
		for i := range writes {
			key := tables.Bound("northacct", "tbl", g, fmt.Sprintf("k%d", i), "r")
			_, ok := held[string(key)]
			require.True(t, ok, "node %d lost acknowledged write %d", id, i)
		}
	}
}

// folderData is what one node's folder holds: state, and the log above it.
type folderData map[string][]byte

// openAlone reads a node's folder without changing it.
func openAlone(t *testing.T, dir string) folderData {
	t.Helper()
	ro := state.Options{ReadOnly: true}
	state, err := state.Open(filepath.Join(dir, "state"), ro)
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	log, err := seglog.Open(filepath.Join(dir, "log"), ro)
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	held := folderData{}
	it, err := state.Scan(nil, nil)
	require.NoError(t, err)
	for it.Next() {
		held[string(it.Key())] = append([]byte(nil), it.Value()...)
	}
	require.NoError(t, it.Close())
	for _, id := range route.First().IDs() {
		held.replay(t, state, log, id)
	}
	return held
}

// replay applies the log entries above the state's applied index.
func (h folderData) replay(t *testing.T, state *state.Store, log state.Log, id geo.RangeID) {
	t.Helper()
	m, err := ranges.OpenMachine(id, state, func(ranges.Applied) {})
	require.NoError(t, err)
	rl, err := log.Range(id, []uint64{1, 2, 3})
	require.NoError(t, err)
	last, err := rl.LastIndex()
	require.NoError(t, err)
	from := m.AppliedState().Index + 1
	if from > last {
		return
	}
	entries, err := rl.Entries(from, last+1, 1<<40)
	require.NoError(t, err)
	for _, e := range entries {
		if len(e.Data) == 0 {
			continue
		}
		g, err := change.ParseGroup(e.Data)
		require.NoError(t, err)
		require.NoError(t, g.Parts(func(kind change.PartKind, body []byte) error {
			if kind != change.PartChange {
				return nil
			}
			r, err := change.ParseRecord(body)
			for _, op := range r.Ops {
				h[string(r.Partition)+string(op.Row)] = op.Value
			}
			return err
		}))
	}
}

// generation finds the table's generation in the catalog of the folder.
func (h folderData) generation(t *testing.T) keys.Generation {
	t.Helper()
	v := h[string(catalog.ContainerPartition(geo.Table, "northacct", "tbl").Append(nil))]
	c, err := catalog.ParseContainer(v)
	require.NoError(t, err)
	return c.Generation()
}

// After a kill the process restarts by itself to the same state (invariant 6): every
// acknowledged value is read at the primary and then at `-secondary`.
//
// Capability: Two locations: A range at rest closes when somebody looks (R12).
func TestRestartAfterKill(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), freeBase(t)
	p := Ports{"127.0.0.1", base}
	want := map[string]string{}
	for round := range 3 {
		cmd := startChild(t, dir, base)
		if round == 0 {
			a := call(t, p, "northacct", http.MethodPost, "/northacct/Tables", `{"TableName":"tbl"}`)
			require.Equal(t, http.StatusCreated, a.status, a.body)
		}
		for k, v := range want {
			for _, suffix := range []string{"", "-secondary"} {
				eventually(t, "the value is back", func() bool {
					a, err := try(p, "northacct", http.MethodGet, entityPath("northacct", suffix, k), "")
					return err == nil && a.status == http.StatusOK && strings.Contains(a.body, fmt.Sprintf(`"v":%q`, v))
				})
			}
		}
		for i := range 100 {
			key, value := fmt.Sprintf("k%d", i%40), fmt.Sprintf("%d-%d", round, i)
			a := call(t, p, "northacct", http.MethodPut, entityPath("northacct", "", key), fmt.Sprintf(`{"v":%q}`, value))
			require.Equal(t, http.StatusNoContent, a.status, a.body)
			want[key] = value
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // Killed: its error says so.
	}
}

// A transaction is whole or not there at all, whatever moment the process is killed at
// (invariants 2 and 6): readers loop at both locations while 1,000 batches flip two rows,
// with kill -9 and a restart in the middle. They never see a mixed pair, nor an older
// one after a newer, and what was acknowledged before the kill is there after it.
//
// Capability: The primary location: A transaction is never half visible.
func TestKilledBetweenTransactions(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), freeBase(t)
	cmd := startChild(t, dir, base)
	p := Ports{"127.0.0.1", base}
	a := call(t, p, "northacct", http.MethodPost, "/northacct/Tables", `{"TableName":"tbl"}`)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	flip := func(n int) (done, gone bool) {
		body := "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
		for _, rk := range []string{"a", "b"} {
			body += fmt.Sprintf("--c\r\nContent-Type: application/http\r\n\r\nPUT /northacct/tbl(PartitionKey='p',RowKey='%s') HTTP/1.1\r\n\r\n{\"v\":%d}\r\n", rk, n)
		}
		a, err := try(p, "northacct", http.MethodPost, "/northacct/$batch", body+"--c--\r\n--b--\r\n", "Content-Type", "multipart/mixed; boundary=b")
		return err == nil && a.status == http.StatusAccepted && strings.Count(a.body, "204 No Content") == 2, err != nil
	}
	eventually(t, "the first flip", func() bool { done, _ := flip(0); return done })
	const flips = 1000
	var acked atomic.Int64 // The last flip known to have happened.
	g, ctx := errgroup.WithContext(t.Context())
	reads := make([]int, 2)
	for i, suffix := range []string{"", "-secondary"} {
		g.Go(func() error {
			last := time.Now()
			for was := -1; was < flips && ctx.Err() == nil; {
				least := acked.Load()
				v := readPair(ctx, p, suffix)
				switch {
				case time.Since(last) > stallMax:
					return fmt.Errorf("at %q: nothing new after %d, %d acknowledged", suffix, was, least)
				case len(v) == 0: // Not arrived yet, or no server.
					continue
				case len(v) != 2 || v[0] != v[1] || v[0] < was, suffix == "" && int64(v[0]) < least:
					return fmt.Errorf("at %q: %v after %d, %d acknowledged", suffix, v, was, least)
				case v[0] > was:
					reads[i]++
					last = time.Now()
				}
				was = v[0]
			}
			return ctx.Err()
		})
	}
	killed := make(chan struct{})
	g.Go(func() error {
		for n := 1; acked.Load() < flips; n++ { // The next value is new, whether this one happened or not.
			done, gone := flip(n)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case done:
				acked.Store(int64(n))
			case gone: // Until it is started again. It may be gone for another reason, too.
				select {
				case <-killed:
				case <-time.After(time.Second):
				}
			}
		}
		return nil
	})
	for acked.Load() < flips/2 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // Killed: its error says so.
	startChild(t, dir, base)
	close(killed)
	require.NoError(t, g.Wait())
	require.GreaterOrEqual(t, acked.Load(), int64(flips))
	require.Greater(t, reads[0], flips/20, "the reader at the primary saw too few pairs")
	require.Greater(t, reads[1], flips/20, "the reader at the secondary saw too few pairs")
}
