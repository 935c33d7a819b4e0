package hostile_test

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/test/devproc"
	"antipode/test/hostile"
	"antipode/test/rest"
)

var (
	clients  = flag.Int("clients", 260, "hostile clients")
	duration = flag.Duration("duration", 10*time.Second, "of the quiet time, and of the attack")
	ratioMax = flag.Float64("ratio", 0, "fail when the honest client's p99 grows by more than this; 0 reports it")
)

func TestMain(m *testing.M) { os.Exit(devproc.Main(m)) }

// Bounds of the server under attack, whatever the machine's speed.
const (
	// growthMax is of the resident memory above that of the quiet time, in bytes: an account's half of the bounds
	// of bodies and of answers, of tables, of blobs and of queues, of 64 MiB each (of the 256 MiB of tables' answers these clients take no more), and as much for the
	// buffers of the connections and for what the stores cache of what is read.
	growthMax = (192 + 192) << 20
	filesMax  = 600 // open files above those of the quiet time: a connection each, and its hop
	startWait = 2 * time.Minute
	stopWait  = 30 * time.Second
)

// 260 hostile clients (slow senders, slow readers, bodies that are announced and
// never sent, costly filters, wrong signatures, policies without end, foreign names, pretended hops) do not stop an honest one: each of its
// operations succeeds, and the server's memory and connections stay bounded. How its p99
// compares with that of the quiet time is printed, and checked where -ratio says so.
//
// Capability: Clients: 260 hostile clients beside an honest one.
func TestHostileClients(t *testing.T) {
	if testing.Short() {
		t.Skip("end-to-end tests need more time than -short has")
	}
	t.Setenv("GOGC", "100") // Memory that is held, not what awaits a collection, is measured.
	p := start(t, 0, "honest", "mallory")
	ctx, cancel := context.WithTimeout(t.Context(), startWait+2**duration+stopWait)
	defer cancel()
	honest := &hostile.Honest{Client: clientOf(p, 0, "honest")}
	crowd := &hostile.Crowd{Client: clientOf(p, 0, "mallory")}
	require.NoError(t, honest.Prepare(ctx))
	require.NoError(t, crowd.Prepare(ctx))
	each := *clients / 13
	crowd.Announce(each)
	crowd.AnnounceBlobs(each)
	crowd.Drip(each)
	crowd.ReadSlowly(each) // two of each
	crowd.FilterCostly(2 * each)
	crowd.SignWrongly(each, honest.Client)
	crowd.StorePolicies(each / 4)
	crowd.Misspell(each / 4)
	crowd.Pretend(each*3/4, clientOf(p, 1000, "honest")) // one of each
	crowd.AnnounceMessages(each)                         // one of each
	crowd.PeekSlowly(each)
	require.Equal(t, *clients/13*13, crowd.Len(), "for numbers of clients that 52 divides")

	_, err := honest.Run(ctx, *duration/4) // Caches and pools are filled.
	require.NoError(t, err)
	quiet, err := honest.Run(ctx, *duration)
	require.NoError(t, err)
	require.Empty(t, quiet.Failed)
	before, files := resident(t, p.PID(), "VmRSS"), openFiles(t, p.PID())
	require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0)) // VmHWM begins again.

	attacking, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { crowd.Run(attacking); close(ended) }()
	attacked, err := honest.Run(ctx, *duration)
	peak, filesPeak := resident(t, p.PID(), "VmHWM"), openFiles(t, p.PID())
	end()
	<-ended
	require.NoError(t, err)

	ratio := float64(attacked.Quantile(0.99)) / float64(quiet.Quantile(0.99))
	t.Logf("quiet:    %v\nattacked: %v\np99 %.1f times\nresident %d MiB, then %d MiB; files %d, then %d\n%s",
		quiet, attacked, ratio, before>>20, peak>>20, files, filesPeak, crowd.Seen())
	require.Empty(t, attacked.Failed, "the honest client is served")
	for kind, wanted := range map[string]string{
		hostile.KindOfPolicies: "400 ", hostile.KindOfHosts: "400 ", hostile.KindOfProbes: "403 ", hostile.KindOfPaths: "400 InvalidUri true",
	} {
		refused := false
		for outcome := range crowd.Outcomes(kind) {
			refused = refused || strings.HasPrefix(outcome, wanted)
			require.True(t, strings.HasPrefix(outcome, wanted) || strings.HasPrefix(outcome, "503 ") || strings.HasPrefix(outcome, "no"), "%s: %s", kind, outcome)
		}
		require.True(t, refused, "%s: %v", kind, crowd.Outcomes(kind))
	}
	require.LessOrEqual(t, peak-before, int64(growthMax), "memory")
	require.LessOrEqual(t, filesPeak-files, filesMax**clients, "connections")
	if *ratioMax > 0 {
		require.LessOrEqual(t, ratio, *ratioMax, "p99 of the honest client")
	}
	requireIdle(t, p.PID())
	stopCtx, cancelStop := context.WithTimeout(t.Context(), stopWait)
	defer cancelStop()
	require.NoError(t, p.Stop(stopCtx), "a drain is bounded")
}

// start runs antipode dev with accounts of the names, with at most so many files open; 0 means as many as tests may have.
func start(t *testing.T, files int, names ...string) *devproc.Process {
	t.Helper()
	base, err := devproc.FreePortBase(t)
	require.NoError(t, err)
	hc := devproc.NewHTTPClient()
	t.Cleanup(hc.CloseIdleConnections)
	var accounts []string
	for _, name := range names {
		accounts = append(accounts, name+":"+base64.StdEncoding.EncodeToString(keyOf(name)))
	}
	p, err := devproc.Start(devproc.Config{
		Binary: devproc.Binary(), Dir: t.TempDir(), PortBase: base, HTTP: hc, Files: files, Args: []string{"--accounts", strings.Join(accounts, ",")},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of antipode dev:\n%s", p.Output())
		}
		require.NoError(t, p.Kill9())
	})
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	require.NoError(t, p.Ready(ctx))
	for _, name := range names { // Ready may come before the accounts are made.
		for c := clientOf(p, 0, name); ; {
			a, err := c.Do(ctx, geo.Table, rest.Request{Method: http.MethodGet, Path: "/Tables", Header: map[string]string{"Accept": "application/json"}})
			if err == nil && a.OK() {
				break
			}
			require.NoError(t, ctx.Err(), "account %s: %v, %v", name, a, err)
		}
	}
	return p
}

// keyOf is the key of an account of these tests.
func keyOf(name string) []byte { return []byte(strings.Repeat(name, 64/len(name)+1))[:64] }

// clientOf is an account's client of the gateway, whose ports are 0 above the base, or of north: 1000 above.
func clientOf(p *devproc.Process, ports int, name string) *rest.Client {
	c := p.Client(ports, false)
	c.Account, c.Key = geo.Account(name), keyOf(name)
	for i, s := range geo.Services {
		c.Base[s] = fmt.Sprintf("http://127.0.0.1:%d/%s", p.PortBase+ports+i, name)
	}
	return c
}

// Bounds of the processor time that a server without clients takes. At rest it is 6 % of
// a processor.
const (
	idleWithin = 30 * time.Second
	idlePart   = 0.5 // of one processor
)

// requireIdle waits until the server works no more for clients that are gone.
func requireIdle(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		before, began := processorTime(t, pid), clock.System{}.Mono()
		time.Sleep(time.Second)
		used := processorTime(t, pid) - before
		return used.Seconds() < idlePart*((clock.System{}).Mono()-began).Seconds()
	}, idleWithin, time.Millisecond, "the server goes on working for clients that left")
}

// processorTime is what the process has used of the processors.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(stat), ") ") // The name may hold anything.
	require.True(t, found)
	fields := strings.Fields(rest)
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second.
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// resident is a line of the process's memory in /proc, in bytes.
func resident(t *testing.T, pid int, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), field+":")
	require.True(t, found)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kib << 10
}

// openFiles is how many files and sockets the process has open.
func openFiles(t *testing.T, pid int) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	return len(files)
}
