package main

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// fakeQueue is a queue service in memory, sound or with one of some faults.
type fakeQueue struct {
	mu       sync.Mutex
	waiting  []fakeMessage
	hidden   map[string]bool
	made     int
	loses    bool // a message, after it was put
	repeats  bool // a message that was got
	changes  bool // a text
	isBehind bool // at the secondary
}

type fakeMessage struct {
	XMLName     xml.Name `xml:"QueueMessage"`
	MessageID   string   `xml:"MessageId"`
	PopReceipt  string
	MessageText string
}

func (f *fakeQueue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.URL.Query().Has("comp"):
		n := len(f.waiting) + len(f.hidden)
		if f.isBehind && strings.Contains(r.URL.Path, "-secondary/") {
			n--
		}
		w.Header().Set("X-Ms-Approximate-Messages-Count", strconv.Itoa(n))
	case r.Method == http.MethodPut:
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPost:
		var m fakeMessage
		if err := xml.NewDecoder(r.Body).Decode(&m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		f.made++
		m.MessageID, m.PopReceipt = fmt.Sprintf("%036d", f.made), fmt.Sprintf("+/%d=", f.made)
		if f.changes && f.made == 150 {
			m.MessageText = m.MessageText[1:] + "?"
		}
		if !f.loses || f.made != 150 {
			f.waiting = append(f.waiting, m)
		}
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodGet:
		f.get(w)
	case f.hidden[r.URL.Query().Get("popreceipt")]:
		delete(f.hidden, r.URL.Query().Get("popreceipt"))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (f *fakeQueue) get(w http.ResponseWriter) {
	if len(f.waiting) == 0 {
		_, _ = w.Write([]byte(`<?xml version="1.0" encoding="utf-8"?><QueueMessagesList />`))
		return
	}
	m := f.waiting[0]
	f.waiting = f.waiting[1:]
	f.hidden[m.PopReceipt] = true
	if f.repeats && f.made >= 150 {
		f.repeats = false
		again := m
		again.PopReceipt += "again"
		f.waiting = append([]fakeMessage{again}, f.waiting...)
	}
	list, _ := xml.Marshal(struct {
		XMLName xml.Name `xml:"QueueMessagesList"`
		List    []fakeMessage
	}{List: []fakeMessage{m}})
	_, _ = w.Write(list)
}

// A run of each workload of queues against a sound one has no errors; one whose messages get lost, come twice, have
// another text or do not arrive at the secondary is void.
//
// Capability: Queues: Queues under load.
func TestQueues(t *testing.T) {
	runQueue := func(t *testing.T, name string, f *fakeQueue) (string, error) {
		f.hidden = map[string]bool{}
		server := httptest.NewServer(f)
		defer server.Close()
		o := options(t, "--workload", name, "--endpoint", server.URL+"/devstoreaccount1", "--admin", "", "--depth", "100",
			"--concurrency", "4", "--duration", "300ms", "--warmup", "0s")
		o.arriveWait = 500 * time.Millisecond
		var out strings.Builder
		err := measure(t.Context(), o, clock.System{}, &out)
		return out.String(), err
	}
	for name, kind := range workloads() {
		if kind.steps == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			out, err := runQueue(t, name, &fakeQueue{})
			require.NoError(t, err, out)
			require.Contains(t, out, "errors    none")
			require.Contains(t, out, "100 before")
			_, err = runQueue(t, name, &fakeQueue{isBehind: true})
			require.ErrorIs(t, err, errVoid)
		})
	}
	for fault, f := range map[string]*fakeQueue{
		"are in the queue, not": {loses: true}, "came twice": {repeats: true}, "wrong value": {changes: true},
	} {
		_, err := runQueue(t, "queue-cycle", f)
		require.ErrorIs(t, err, errVoid)
		require.ErrorContains(t, err, fault)
	}
}
