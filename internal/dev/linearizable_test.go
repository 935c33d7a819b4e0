package dev

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/geo"
)

// verb is what a client does with a key.
type verb int

const (
	readKey verb = iota
	putKey
	insertKey // where there is nothing
	swapKey   // where the value is still the one that was read
	deleteKey
)

// keyOp is one operation on a key: of an entity, or of a blob.
type keyOp struct {
	verb verb
	key  string
	// value is written; expect is what a swap replaces, tag its ETag.
	value, expect, tag string
}

// keyResult is what the client knows: unknown where no answer told.
type keyResult struct {
	unknown, done bool
	value, tag    string
}

// register is a key as one client after the other would see it (R5). What has no
// answer may have happened at any time after its call, or never: its return stays open.
func register() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			byKey := map[string][]porcupine.Operation{}
			for _, o := range history {
				k := o.Input.(keyOp).key
				byKey[k] = append(byKey[k], o)
			}
			for _, p := range byKey {
				parts = append(parts, p)
			}
			return parts
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			now, in, out := state.(string), input.(keyOp), output.(keyResult)
			does, next := true, in.value
			switch in.verb {
			case readKey:
				return out.unknown || out.value == now, now
			case putKey:
			case insertKey:
				does = now == ""
			case swapKey:
				does = now == in.expect
			case deleteKey:
				does, next = now != "", ""
			}
			if !does {
				next = now
			}
			return out.unknown || out.done == does, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// The register refuses what is not linearizable: a stale read, a lost write, a second
// insert.
func TestRegisterRefuses(t *testing.T) {
	at := func(client int, call, ret int64, in keyOp, out keyResult) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Call: call, Return: ret, Input: in, Output: out}
	}
	write := at(1, 0, 10, keyOp{verb: putKey, value: "a"}, keyResult{done: true})
	lost := at(1, 0, math.MaxInt64, keyOp{verb: putKey, value: "a"}, keyResult{unknown: true})
	for name, tc := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"stale read":      {[]porcupine.Operation{write, at(2, 20, 30, keyOp{verb: readKey}, keyResult{value: ""})}, false},
		"fresh read":      {[]porcupine.Operation{write, at(2, 20, 30, keyOp{verb: readKey}, keyResult{value: "a"})}, true},
		"read beside it":  {[]porcupine.Operation{write, at(2, 5, 30, keyOp{verb: readKey}, keyResult{value: ""})}, true},
		"second insert":   {[]porcupine.Operation{write, at(2, 20, 30, keyOp{verb: insertKey, value: "b"}, keyResult{done: true})}, false},
		"refused swap":    {[]porcupine.Operation{write, at(2, 20, 30, keyOp{verb: swapKey, expect: "a", value: "b"}, keyResult{})}, false},
		"late lost write": {[]porcupine.Operation{lost, at(2, 20, 30, keyOp{verb: readKey}, keyResult{}), at(2, 40, 50, keyOp{verb: readKey}, keyResult{value: "a"})}, true},
		"lost write gone": {[]porcupine.Operation{lost, at(2, 20, 30, keyOp{verb: readKey}, keyResult{value: "a"}), at(2, 40, 50, keyOp{verb: readKey}, keyResult{})}, false},
	} {
		require.Equal(t, tc.want, porcupine.CheckOperations(register(), tc.history), name)
	}
}

// Entities and blobs are linearizable at the primary while the node that leads their
// range is stopped again and again, requests under way: reads and failed conditions
// included (R1, R5).
func TestLinearizable(t *testing.T) {
	const clients, keys = 8, 3
	ops, stops := 150, 5
	if testing.Short() {
		ops, stops = 40, 2
	}
	c := startFaulty(t)
	createTable(t, c, "northacct")
	a := send(t, c.door, geo.Blob, http.MethodPut, "/northacct/cont?restype=container", nil)
	require.Equal(t, http.StatusCreated, a.status, a.body)

	h := &history{start: time.Now(), clients: clients}
	stop := make(chan struct{})
	var disturbed sync.WaitGroup
	disturbed.Go(func() { stopLeaders(t, c, stops, stop, h) })
	var wg sync.WaitGroup
	for id := range clients {
		rng := rand.New(rand.NewPCG(uint64(id), 1))
		wg.Go(func() {
			seen := map[string]keyResult{} // by key, what was read last
			for i := 0; i < ops || h.stopped() < stops; i++ {
				service := geo.Table
				if rng.IntN(2) == 0 {
					service = geo.Blob
				}
				op := keyOp{verb: verb(rng.IntN(5)), key: fmt.Sprintf("%v-%d", service, rng.IntN(keys)), value: fmt.Sprintf("c%d-%d", id, i)}
				if last := seen[op.key]; op.verb == swapKey {
					if last.value == "" {
						op.verb = readKey
					}
					op.expect, op.tag = last.value, last.tag
				}
				if got := h.do(t, c, id, service, op); op.verb == readKey && !got.unknown {
					seen[op.key] = got
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	disturbed.Wait()
	result, info := porcupine.CheckOperationsVerbose(register(), h.ops, time.Minute)
	t.Logf("%d operations, %d without an answer, %d stops of a leader", len(h.ops), h.unknown, h.stops)
	if result != porcupine.Ok {
		file := t.TempDir() + "/history.html"
		require.NoError(t, porcupine.VisualizePath(register(), info, file))
		t.Fatalf("history is not linearizable: %v", result)
	}
	require.GreaterOrEqual(t, len(h.ops), clients*ops/2, "most operations had an answer")
}

// history collects operations. Methods may be called concurrently.
type history struct {
	start   time.Time
	clients int

	mu      sync.Mutex
	ops     []porcupine.Operation
	unknown int
	stops   int
}

func (h *history) stopped() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stops
}

// do runs one operation and notes it; what was refused before anything happened is not
// part of the history.
func (h *history) do(t *testing.T, c *Cluster, client int, s geo.Service, op keyOp) keyResult {
	call := time.Since(h.start).Nanoseconds()
	out, happened := run(t, c, s, op)
	ret := time.Since(h.start).Nanoseconds()
	if !happened {
		return keyResult{unknown: true}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if out.unknown {
		h.unknown++
		ret, client = math.MaxInt64, h.clients+h.unknown // It never returned.
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op, Call: call, Output: out, Return: ret})
	return out
}

// run sends one operation. happened is false where the answer says that nothing did.
func run(t *testing.T, c *Cluster, s geo.Service, op keyOp) (out keyResult, happened bool) {
	method, target := http.MethodPut, entityPath("northacct", "", op.key)
	body, headers := fmt.Sprintf(`{"v":%q}`, op.value), []string(nil)
	if s == geo.Blob {
		target, body, headers = "/northacct/cont/"+op.key, op.value, []string{"x-ms-blob-type", "BlockBlob"}
	}
	switch op.verb {
	case readKey, deleteKey:
		method, body = http.MethodGet, ""
		if op.verb == deleteKey {
			method = http.MethodDelete
		}
		headers = nil
		if op.verb == deleteKey && s == geo.Table {
			headers = []string{"If-Match", "*"}
		}
	case insertKey:
		if s == geo.Table {
			method, target = http.MethodPost, "/northacct/tbl"
			body = fmt.Sprintf(`{"PartitionKey":%q,"RowKey":"r","v":%q}`, op.key, op.value)
		} else {
			headers = append(headers, "If-None-Match", "*")
		}
	case swapKey:
		headers = append(headers, "If-Match", op.tag)
	}
	a, err := exchange(c.door, s, method, target, []byte(body), headers...)
	if err != nil {
		return keyResult{unknown: true}, true
	}
	switch a.status {
	case http.StatusOK:
		out = keyResult{value: a.body, tag: a.header.Get("ETag")}
		if s == geo.Table {
			var doc struct{ V string }
			if !json.Valid([]byte(a.body)) || json.Unmarshal([]byte(a.body), &doc) != nil {
				t.Errorf("read %s: %q", op.key, a.body)
			}
			out.value = doc.V
		}
	case http.StatusCreated, http.StatusNoContent, http.StatusAccepted:
		out.done = true
	case http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed:
	case http.StatusServiceUnavailable:
		return out, false
	case http.StatusInternalServerError:
		if !strings.Contains(a.header.Get("x-ms-error-code"), "OperationTimedOut") {
			t.Errorf("%+v: %s", op, a.body)
		}
		out.unknown = true
	default:
		t.Errorf("%+v: %d %s", op, a.status, a.body)
	}
	return out, true
}

// stopLeaders stops the node that leads the table range or the blob range, and starts it
// again.
func stopLeaders(t *testing.T, c *Cluster, stops int, stop chan struct{}, h *history) {
	stamp := c.locations[North].Stamp()
	for i := range stops {
		service := []geo.Service{geo.Table, geo.Blob}[i%2]
		leader := geo.NodeID(0)
		for leader == 0 {
			for _, id := range stamp.Nodes() {
				if n := stamp.Node(id); n != nil && n.Range(geo.FirstRange(service)).Leading() {
					leader = id
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
		if err := stamp.Stop(leader, false); err != nil {
			t.Errorf("stop node %d: %v", leader, err)
		}
		time.Sleep(100 * time.Millisecond)
		if err := stamp.Start(leader); err != nil {
			t.Errorf("start node %d: %v", leader, err)
		}
		h.mu.Lock()
		h.stops++
		h.mu.Unlock()
		time.Sleep(200 * time.Millisecond)
	}
}

// send is exchange where an answer is required.
func send(t *testing.T, p Ports, s geo.Service, method, target string, body []byte, headers ...string) answer {
	t.Helper()
	a, err := exchange(p, s, method, target, body, headers...)
	require.NoError(t, err)
	return a
}

// exchange sends a signed request of any service.
func exchange(p Ports, s geo.Service, method, target string, body []byte, headers ...string) (answer, error) {
	if s == geo.Table {
		return try(p, "northacct", method, target, string(body), headers...)
	}
	r, err := http.NewRequest(method, "http://"+p.Of(s)+target, strings.NewReader(string(body)))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("x-ms-version", "2019-02-02")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if err := auth.Sign(r, s, "northacct", key64, time.Now()); err != nil {
		return answer{}, err
	}
	return roundTrip(r)
}
