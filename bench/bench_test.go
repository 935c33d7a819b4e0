package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/test/devproc"
	"antipode/test/fake"
)

// TestMain is also the child of a test of workloadRestart.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArgument {
		if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(devproc.Main(m))
}

func options(t *testing.T, args ...string) Options {
	t.Helper()
	o, err := parse(args, t.Output())
	require.NoError(t, err)
	return o
}

// Every request written by hand is signed as the package that verifies requests
// signs the same request.
func TestSigner(t *testing.T) {
	now := time.Date(2013, 10, 23, 22, 5, 54, 0, time.UTC)
	key, err := base64.StdEncoding.DecodeString(developmentKey)
	require.NoError(t, err)
	for name, kind := range workloads() {
		o := options(t, "--workload", name)
		target, err := newTarget(o, false)
		require.NoError(t, err)
		w := newWorkload(o, "bench1", 3)
		calls := []func() *call{w.container}
		if m := w.messages; m != nil {
			copy(m.message[:], "0e0a0d8c-6fb5-4b0e-8a5e-0d2b4b4f6c11")
			m.receipt = "AQEAAAAAAAAAAJ+x/Q8="
			calls = append(calls, m.count)
			for _, step := range kind.steps {
				calls = append(calls, func() *call { return m.call(step) })
			}
		} else {
			calls = append(calls,
				func() *call { return w.read(object{3, 4}) },
				func() *call { return w.write(object{3, 4}) })
		}
		calls = append(calls, operationCalls(w.operation, object{3, 4})...)
		if w.scan != nil {
			calls = append(calls, w.scan.next)
		}
		if l, ok := w.scan.(*list); ok {
			calls = append(calls, (&list{name: l.name, marker: "2!a+b/c d=&e"}).next)
		}
		for _, made := range calls {
			c := made()
			b := newSigner(target).append(nil, c, now)
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
			require.NoError(t, err, "%q", b)
			got := r.Header.Get("Authorization")
			r.Header.Del("Authorization")
			service, sign := geo.Table, auth.SignSharedKeyLite
			switch {
			case kind.blob:
				service, sign = geo.Blob, auth.Sign
			case kind.steps != nil:
				service, sign = geo.Queue, auth.Sign
			}
			require.NoError(t, sign(r, service, "devstoreaccount1", key, now))
			require.Equal(t, r.Header.Get("Authorization"), got, "%s: %.400q", name, b)
		}
	}
}

// Answers framed by length, by chunks or not at all are read whole, and what is
// no HTTP is an error that closes the connection.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		wire, body string
		status     int
	}{
		{"HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello", "hello", 200},
		{"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", 200},
		{"HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n", "", 204},
		{"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", "no", 503},
	} {
		listener := httptest.NewUnstartedServer(nil).Listener
		go func() {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = c.Write([]byte(tt.wire))
		}()
		c := conn{address: listener.Addr().String()}
		a, err := c.do(t.Context(), []byte("GET / HTTP/1.1\r\n\r\n"), time.Now())
		require.NoError(t, err)
		require.Equal(t, tt.status, a.status)
		require.Equal(t, tt.body, string(a.body))
		require.Equal(t, strings.Contains(tt.wire, "close"), c.net == nil)
		c.close()
		require.NoError(t, listener.Close())
	}
	bad := conn{r: bufio.NewReader(strings.NewReader("SSH-2.0-server ready\r\n"))}
	_, err := bad.readStatus()
	require.ErrorIs(t, err, errAnswer)
}

// Percentiles from buckets are those of the sorted list, within the width of a
// bucket.
func TestPercentile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	r := newRecorder()
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(rng.ExpFloat64() * float64(5*time.Millisecond))
		all = append(all, d)
		r.ok(d, 1)
	}
	slices.Sort(all)
	for _, p := range []float64{0.01, 0.5, 0.9, 0.99, 0.999} {
		want := all[int(p*float64(len(all)))]
		require.InEpsilon(t, want, r.percentile(p), 0.05, "p%v", p*100)
	}
	require.Equal(t, all[len(all)-1], r.max)
	for i := range 3000 {
		d := time.Duration(i * i)
		require.LessOrEqual(t, d, bucketEnd(bucketOf(d)))
	}
}

// A backlog that goes on growing through the second half voids a run; one that is
// high and level, or that shakes by less than half a second of writes, does not.
func TestBacklogGrows(t *testing.T) {
	for _, tt := range []struct {
		backlog []int64
		grows   bool
	}{
		{[]int64{0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100}, false},
		{[]int64{0, 1e3, 2e3, 3e3, 4e3, 5e3, 6e3, 7e3, 20e3, 30e3, 40e3, 50e3}, true},
		{[]int64{9e4, 9e4, 9e4, 9e4, 9e4, 9e4, 9e4, 9e4, 9e4, 9e4, 9e4, 9e4}, false},
		{[]int64{0, 0, 0, 0, 0, 0, 0, 0, 900, 900, 900, 900}, false},
		{nil, false},
	} {
		l := lagSamples{backlog: tt.backlog}
		_, _, grew := l.grows(1000)
		require.Equal(t, tt.grows, grew, "%v", tt.backlog)
	}
}

// The processor time of a process is read whatever its name.
func TestParseStat(t *testing.T) {
	d, err := parseStat("123 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20")
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, d)
	_, err = parseStat("123 (x) S 1")
	require.Error(t, err)
}

// A whole run of each workload against a sound store counts operations, has no
// errors and reads its values back at both endpoints; against a store that skips
// changes on the way to the secondary, or tears a transaction there, the run is void.
func TestRun(t *testing.T) {
	for name, kind := range workloads() {
		if kind.steps != nil || kind.begins != nil {
			continue // See TestQueues and TestOperations.
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := runFake(t, fake.Faults{}, name)
			require.NoError(t, err, out)
			require.Contains(t, out, "errors    none")
			require.NotContains(t, out, "read back 0")
			require.Equal(t, kind.items > 0, strings.Contains(out, "items     "), out)
			if !kind.reads && !kind.blob {
				_, err = runFake(t, fake.Faults{SkipAtSecondary: 3}, name)
				require.ErrorIs(t, err, errVoid)
			}
			if name == workloadBatch {
				_, err = runFake(t, fake.Faults{Tear: true}, name)
				require.ErrorIs(t, err, errVoid)
				require.ErrorContains(t, err, "99 entities of 100")
			}
		})
	}
}

func runFake(t *testing.T, faults fake.Faults, name string) (string, error) {
	t.Helper()
	server := httptest.NewServer(&store{Store: fake.New(faults, 50*time.Millisecond)})
	defer server.Close()
	var out strings.Builder
	// Longer than an operation takes on a busy machine; short tests are also those of the race detector.
	duration, rows := "2s", "40"
	if testing.Short() {
		duration = "5s"
	}
	if workloads()[name].items > 0 {
		rows = "2000" // Two sets of entities, two pages.
	}
	o := options(t, "--workload", name, "--endpoint", server.URL+"/devstoreaccount1", "--admin", "",
		"--concurrency", "4", "--duration", duration, "--warmup", "50ms", "--rows", rows, "--read-back", "40")
	o.arriveWait = time.Minute
	if faults != (fake.Faults{}) {
		o.arriveWait = 2 * time.Second // What is skipped never arrives.
	}
	err := measure(t.Context(), o, clock.System{}, &out)
	return out.String(), err
}

// Every bad flag is named.
func TestValidate(t *testing.T) {
	_, err := parse([]string{"--workload", "x", "--key", "%", "--concurrency", "0", "--duration", "0", "--partitions", "0", "--endpoint", "ftp://a"}, t.Output())
	require.Error(t, err)
	for _, flag := range []string{"--workload", "--key", "--concurrency", "--duration", "--partitions", "--endpoint"} {
		require.ErrorContains(t, err, flag)
	}
	for flag, args := range map[string][]string{
		"--rows":  {"--workload", workloadDelete, "--concurrency", "40"}, // The default is 10,000.
		"--size":  {"--workload", workloadAppend, "--size", "1MiB"},
		"--size ": {"--workload", workloadBlobCopy, "--size", "1000GiB"},
		"--bytes": {"--workload", workloadBlobCopy, "--bytes", "1MiB"},
	} {
		_, err := parse(args, t.Output())
		require.ErrorContains(t, err, flag)
	}
}
