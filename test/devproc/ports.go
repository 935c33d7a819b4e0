package devproc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"antipode/geo"
)

// ErrNoPorts means that no port base had all its ports free.
var ErrNoPorts = errors.New("no free port base")

// Offsets of the ports from the port base. NorthPorts and SouthPorts
// are the first and the second location's own.
const (
	AdminOffset = 80
	DNSOffset   = 53
	NorthPorts  = 1000
	SouthPorts  = 2000
)

// Port bases are tried between these, so that all ports lie below those that the
// kernel assigns by itself (from 32768 on).
const (
	baseMin    = 10500
	baseMax    = 30000
	baseTries  = 200
	basesApart = 100
	portEnd    = 32768
	// basePorts is above how far the ports of a base reach, a cluster's too.
	basePorts = 2700
)

// PortsVariable names, in the environment, the first and the last port that tests may use: "20000-24999". Without it
// they use those below the kernel's own.
const PortsVariable = "ANTIPODE_TEST_PORTS"

// portRange is what PortsVariable says: bases and ports are from first on, bases below basesEnd, ports below end.
func portRange() (first, basesEnd, end int, err error) {
	text := os.Getenv(PortsVariable)
	if text == "" {
		return baseMin, baseMax, portEnd, nil
	}
	if n, err := fmt.Sscanf(text, "%d-%d", &first, &end); n != 2 || end-first < basePorts+basesApart {
		return 0, 0, 0, fmt.Errorf("%w: %s is %q: %w", ErrNoPorts, PortsVariable, text, errors.Join(err, errors.New("it needs a first and a last port, and room")))
	}
	return first, end - basePorts, end + 1, nil
}

// FreePortBase finds a base of which every port that antipode dev listens on is
// free, and h's own as long as it holds them.
func FreePortBase(h Holder) (int, error) { return FindPortBase(h, addresses) }

// FindPortBase finds a base all of whose addresses are free, and h's own as long as it holds them.
func FindPortBase(h Holder, addresses func(base int) []string) (int, error) {
	first, end, _, err := portRange()
	if err != nil {
		return 0, err
	}
	var last error
	for range baseTries {
		base := first + basesApart*rand.IntN((end-first)/basesApart)
		if last = take(h, addresses(base)); last == nil {
			return base, nil
		}
	}
	return 0, fmt.Errorf("%w in %d tries: %w", ErrNoPorts, baseTries, last)
}

// FreePorts finds n ports of loopback, all different, that are free, and h's own as long as it holds them. Port 0
// would give some that the kernel also gives to outgoing connections, which may take them before the
// caller listens.
func FreePorts(h Holder, n int) ([]int, error) {
	first, _, end, err := portRange()
	if err != nil {
		return nil, err
	}
	var out []int
	var last error
	for range baseTries + n {
		if len(out) == n {
			break
		}
		port := first + rand.IntN(end-first)
		if err := take(h, []string{loopbackAddress(port)}); err != nil {
			last = err
			continue
		}
		out = append(out, port)
	}
	if len(out) < n {
		return nil, fmt.Errorf("%w: %d of %d: %w", ErrNoPorts, len(out), n, last)
	}
	return out, nil
}

// take makes addresses that nothing listens on h's own. They are claimed first: to look whether a server listens there is to
// listen there for a moment, in which the server of another test could not.
func take(h Holder, addresses []string) error {
	release, err := claim(addresses)
	if err != nil {
		return err
	}
	if err := probe(addresses); err != nil {
		release()
		return err
	}
	h.Cleanup(release)
	return nil
}

func loopbackAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Ports lists every port of a base.
func Ports(base int) []int {
	var out []int
	for _, first := range []int{0, NorthPorts, SouthPorts} {
		for i := range geo.Services {
			out = append(out, base+first+i)
		}
		out = append(out, base+first+AdminOffset)
	}
	return append(out, base+DNSOffset)
}

func addresses(base int) []string {
	var out []string
	for _, port := range Ports(base) {
		out = append(out, loopbackAddress(port))
	}
	return out
}

// probe listens on each address for a moment.
func probe(addresses []string) error {
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// NewHTTPClient returns a client for the tests: it resolves every name under
// .localhost to 127.0.0.1, which not every resolver does, and follows no
// redirect. Close its idle connections when done.
func NewHTTPClient() *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 64,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, loopback(address))
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// loopback turns name.localhost:port into 127.0.0.1:port and leaves the rest.
func loopback(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err == nil && (host == "localhost" || strings.HasSuffix(host, ".localhost")) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
