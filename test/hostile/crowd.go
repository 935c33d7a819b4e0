package hostile

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"antipode/api/auth"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/test/rest"
)

// reconnectPause is how long a hostile client waits before its next connection: it
// attacks the server, not the kernel's supply of ports.
const reconnectPause = 100 * time.Millisecond

// serviceVersion is sent with every hostile request.
const serviceVersion = "2021-12-02"

// Crowd is a set of hostile clients. Fill it by Add, then Run it once.
type Crowd struct {
	// Client owns the hostile account.
	Client *rest.Client

	members []member

	mu sync.Mutex
	// seen counts how the attacks of each kind ended.
	seen map[string]map[string]int
}

type member struct {
	kind, addr string
	attack     attack
}

// attack is one connection's worth of harm. It returns the first line of what the server
// answered, "" for none.
type attack func(ctx context.Context, c net.Conn) string

// add adds n clients of a kind, whose name begins with the service that they attack.
func (h *Crowd) add(n int, kind string, a attack) {
	s := geo.Table
	switch {
	case strings.HasPrefix(kind, "blob"):
		s = geo.Blob
	case strings.HasPrefix(kind, "queue"):
		s = geo.Queue
	}
	h.addAt(n, kind, hostOf(h.Client.Base[s]), a)
}

func (h *Crowd) addAt(n int, kind, addr string, a attack) {
	for range n {
		h.members = append(h.members, member{kind, addr, a})
	}
}

// Len is the number of clients.
func (h *Crowd) Len() int { return len(h.members) }

// Run attacks until ctx ends. All clients have stopped when it returns.
func (h *Crowd) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, m := range h.members {
		all.Go(func() {
			for ctx.Err() == nil {
				h.count(m.kind, h.connect(ctx, m))
				pause(ctx, reconnectPause)
			}
		})
	}
	all.Wait()
}

func (h *Crowd) connect(ctx context.Context, m member) string {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", m.addr)
	if err != nil {
		return "not connected"
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer func() { _ = c.Close() }()
	return m.attack(ctx, c)
}

func (h *Crowd) count(kind, outcome string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = map[string]map[string]int{}
	}
	if h.seen[kind] == nil {
		h.seen[kind] = map[string]int{}
	}
	if outcome == "" {
		outcome = "no answer"
	}
	h.seen[kind][outcome]++
}

// Seen describes how the attacks ended, a line for each kind.
func (h *Crowd) Seen() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(h.seen)) {
		fmt.Fprintf(&b, "%s:", kind)
		for _, outcome := range slices.Sorted(maps.Keys(h.seen[kind])) {
			fmt.Fprintf(&b, " %s x%d;", outcome, h.seen[kind][outcome])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// head is the signed head of a request whose body has the given length.
func (h *Crowd) head(s geo.Service, method, pathAndQuery string, length int64, header map[string]string) (string, error) {
	return signedHead(h.Client, s, method, pathAndQuery, length, header)
}

func signedHead(c *rest.Client, s geo.Service, method, pathAndQuery string, length int64, header map[string]string) (string, error) {
	r, err := http.NewRequest(method, c.Base[s]+pathAndQuery, http.NoBody)
	if err != nil {
		return "", err
	}
	r.ContentLength = length
	for name, value := range header {
		r.Header.Set(name, value)
	}
	r.Header.Set(protocol.HeaderVersion, serviceVersion)
	if err := auth.Sign(r, s, c.Account, c.Key, c.Clock.Now()); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, r.URL.RequestURI(), r.URL.Host)
	if length != 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", length)
	}
	for name, values := range r.Header {
		fmt.Fprintf(&b, "%s: %s\r\n", name, values[0])
	}
	return b.String() + "\r\n", nil
}

func hostOf(base string) string {
	_, rest, _ := strings.Cut(base, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// statusLine reads the first line of an answer; "" where none comes.
func statusLine(r *bufio.Reader) string {
	line, err := r.ReadString('\n')
	if err != nil {
		return ""
	}
	_, status, _ := strings.Cut(strings.TrimSpace(line), " ")
	return status
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
