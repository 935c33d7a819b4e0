package blobs

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/services/blobs"
)

// countingListener counts what is read from its connections.
type countingListener struct {
	net.Listener
	read, opened *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.opened.Add(1)
	return countingConn{c, l.read}, nil
}

type countingConn struct {
	net.Conn
	read *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// While no disk takes anything the bytes read from the sockets stop at the bound of
// bytes in flight, however many upload; beside it stands what
// net/http reads ahead with each header. When the disk goes on, all arrive.
// It holds invariant 8.
//
// Capability: Clients: Bounded memory of uploads.
func TestStalledDiskStopsReading(t *testing.T) {
	t.Parallel()
	const (
		body, inFlight, uploads = 2 << 20, 4 << 20, 16
		readAhead               = 8 << 10
	)
	r := newRig(t, func(o *Options) { o.InFlightBytesMax = 2 * inFlight }) // Half of it for an account.
	gate := make(chan struct{})
	var waiting atomic.Int64
	r.payload.onPut = func() error {
		waiting.Add(1)
		<-gate
		return nil
	}
	var begun atomic.Int64
	handler := r.serve(r.handler)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		begun.Add(1)
		handler.ServeHTTP(w, hr)
	}))
	var read, opened atomic.Int64
	server.Listener = countingListener{server.Listener, &read, &opened}
	server.Start()
	defer server.Close()
	r.url = server.URL

	var wg sync.WaitGroup
	statuses := make([]int, uploads)
	for i := range uploads {
		wg.Go(func() {
			a, err := r.try(http.MethodPut, fmt.Sprintf("/cont/b%d", i), bytes.NewReader(content(body, byte(i))), "x-ms-blob-type", "BlockBlob")
			if err == nil {
				statuses[i] = a.status
			}
		})
	}
	require.Eventually(t, func() bool { return begun.Load() == uploads && waiting.Load() == inFlight/blobs.ChunkBytesMax }, 10*time.Second, time.Millisecond)
	require.LessOrEqual(t, read.Load(), int64(inFlight+uploads*readAhead))
	close(gate)
	wg.Wait()
	for i, status := range statuses {
		if status == http.StatusServiceUnavailable { // A starved machine elected another leader meanwhile.
			status = r.put(fmt.Sprintf("/cont/b%d", i), content(body, byte(i))).status
		}
		require.Equal(t, http.StatusCreated, status, i)
	}
	require.GreaterOrEqual(t, read.Load(), int64(uploads*body))
}
