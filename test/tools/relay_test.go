package tools

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
)

// publicNames are the hosts that programs insist on. They reach them through the relay, their HTTPS proxy. They are of publicZone.
const (
	publicZone  = "core.windows.net"
	publicNames = "*.blob." + publicZone
)

// relay stands between a program and the server: it ends TLS for programs that insist on it, and remembers the
// answers that are errors.
type relay struct {
	// url is the address for plain HTTP, and of the HTTPS proxy.
	url string
	// securePort is the port that ends TLS, for a program that can be led there.
	securePort int
	// backend is host and port of the server.
	backend string
	// roots is the file of the certificate that programs trust.
	roots string

	mu sync.Mutex
	// suffix follows the account in the host that requests to a public name go to. Guarded by mu.
	suffix string
	// errors counts answers of 400 and above by what was asked. Guarded by mu.
	errors map[answer]int
}

// answer is an answer of 400 or above, and the request.
type answer struct {
	request string
	status  int
	code    string
	// times is how often it came; 0 in the relay's own count.
	times int
}

func (a answer) String() string {
	return fmt.Sprintf("%s: %d %s, %d times", a.request, a.status, a.code, a.times)
}

// newRelay runs a relay before the blob service at a port until the test ends.
func newRelay(t *testing.T, blobPort int) *relay {
	t.Helper()
	f := &relay{backend: fmt.Sprintf("127.0.0.1:%d", blobPort), errors: map[answer]int{}}
	certificate := f.certify(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	proxy := &httputil.ReverseProxy{
		Rewrite: f.rewrite, Transport: transport, ModifyResponse: f.note, ErrorHandler: f.fail,
	}
	ports, err := devproc.FreePorts(t, 2)
	require.NoError(t, err)
	secure := fmt.Sprintf("127.0.0.1:%d", ports[1])
	f.url, f.securePort = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), ports[1]
	serve(t, ports[0], nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			tunnel(w, secure)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	serve(t, ports[1], &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, proxy)
	t.Cleanup(transport.CloseIdleConnections)
	return f
}

// serve runs a server at a port until the test ends.
func serve(t *testing.T, port int, secrets *tls.Config, h http.Handler) {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	if secrets != nil {
		l = tls.NewListener(l, secrets)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)} // Clients open connections in vain.
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
}

// tunnel connects a client of the HTTPS proxy with the server that ends TLS, whatever name it asked for.
func tunnel(w http.ResponseWriter, to string) {
	there, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	here, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err == nil {
		var ways sync.WaitGroup
		ways.Go(func() { _, _ = io.Copy(there, here); _ = there.Close() })
		ways.Go(func() { _, _ = io.Copy(here, there); _ = here.Close() })
		ways.Wait()
	}
	_, _ = here.Close(), there.Close()
}

// certify makes a certificate of the public names and writes it to a file.
func (f *relay) certify(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: publicNames}, DNSNames: []string{publicNames},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	f.roots = filepath.Join(t.TempDir(), "roots.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(f.roots, text, 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// toSecondary makes requests to an account's public name go to its -secondary.
func (f *relay) toSecondary() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.suffix = geo.SecondarySuffix
}

func (f *relay) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = "http", f.backend
	r.Out.URL.RawQuery = r.In.URL.RawQuery // Signed as it stands.
	r.Out.Host = r.In.Host
	if strings.HasSuffix(r.In.Host, "."+publicZone) {
		f.mu.Lock()
		defer f.mu.Unlock()
		account, _, _ := strings.Cut(r.In.Host, ".")
		r.Out.Host = account + f.suffix + ".blob.localhost"
	}
}

// note remembers an answer that is an error.
func (f *relay) note(r *http.Response) error {
	if r.StatusCode < http.StatusBadRequest {
		return nil
	}
	asked := []string{r.Request.Method}
	for _, name := range []string{"restype", "comp"} {
		if v := r.Request.URL.Query().Get(name); v != "" {
			asked = append(asked, name+"="+v)
		}
	}
	for _, name := range []string{"X-Ms-Copy-Source", "X-Ms-Blob-Type", "X-Ms-Access-Tier"} {
		if r.Request.Header.Get(name) != "" {
			asked = append(asked, strings.ToLower(name))
		}
	}
	f.count(answer{strings.Join(asked, " "), r.StatusCode, r.Header.Get("X-Ms-Error-Code"), 0})
	return nil
}

// fail answers where the server did not. A client that gives up is no error.
func (f *relay) fail(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, context.Canceled) {
		f.count(answer{r.Method + ": " + err.Error(), http.StatusBadGateway, "", 0})
	}
	w.WriteHeader(http.StatusBadGateway)
}

func (f *relay) count(a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors[a]++
}

// take returns the errors since the last call, and forgets them.
func (f *relay) take() []answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]answer, 0, len(f.errors))
	for a, times := range f.errors {
		a.times = times
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b answer) int { return strings.Compare(a.String(), b.String()) })
	clear(f.errors)
	return out
}
