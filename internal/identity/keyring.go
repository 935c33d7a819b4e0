package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
)

// Files names the PEM files of a node.
type Files struct {
	// CA holds the authorities that are trusted, several while one is replaced.
	CA string
	// Cert and Key are the node's own.
	Cert, Key string
}

// ErrRefused means that a certificate names another process than expected.
var ErrRefused = errors.New("refused")

// Keyring holds a node's certificate and the authorities it trusts. A handshake after a file has
// changed uses the new contents; open connections are not affected. While the new contents cannot
// be used (half written, of another node) the previous ones are, and the log has the reason.
// Methods may be called concurrently.
type Keyring struct {
	self   Identity
	files  Files
	clock  clock.Clock
	logger *slog.Logger

	mu    sync.Mutex
	seen  [3]version
	cert  *tls.Certificate
	roots *x509.CertPool
	// bad is why the current contents of the files are not used.
	bad error
}

// version identifies the contents of a file.
type version struct {
	mod  time.Time
	size int64
}

// OpenKeyring reads the files. The certificate must be valid now, signed by an
// authority of CA, and name self; self.Stamp may be empty and is then taken from it.
func OpenKeyring(self Identity, files Files, c clock.Clock, logger *slog.Logger) (*Keyring, error) {
	k := &Keyring{self: self, files: files, clock: c, logger: logger}
	k.seen, k.bad = k.stat()
	if k.bad == nil {
		k.cert, k.roots, k.bad = k.read()
	}
	if k.bad != nil {
		return nil, k.bad
	}
	named, err := k.verify(k.cert.Leaf, k.roots, k.isSelf)
	if err != nil {
		return nil, fmt.Errorf("own certificate %s: %w", files.Cert, err)
	}
	k.self = named
	return k, nil
}

// OpenGatewayKeyring reads the files of a gateway: see OpenKeyring. The gateway's name is that in
// the certificate.
func OpenGatewayKeyring(files Files, c clock.Clock, logger *slog.Logger) (*Keyring, error) {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", files.Cert, files.Key, err)
	}
	self, err := Of(pair.Leaf)
	if err != nil {
		return nil, fmt.Errorf("own certificate %s: %w", files.Cert, err)
	}
	if self.Gateway == "" {
		return nil, fmt.Errorf("own certificate %s: %w: it is that of %s, not of a gateway", files.Cert, ErrRefused, self)
	}
	return OpenKeyring(self, files, c, logger)
}

// Self is the identity of the node or gateway.
func (k *Keyring) Self() Identity { return k.self }

// NotAfter is when the certificate in use expires.
func (k *Keyring) NotAfter() time.Time {
	cert, _ := k.current()
	return cert.Leaf.NotAfter
}

func (k *Keyring) stat() (seen [3]version, err error) {
	for i, name := range []string{k.files.CA, k.files.Cert, k.files.Key} {
		info, err := os.Stat(name)
		if err != nil {
			return seen, err
		}
		seen[i] = version{info.ModTime(), info.Size()}
	}
	return seen, nil
}

func (k *Keyring) read() (*tls.Certificate, *x509.CertPool, error) {
	ca, err := os.ReadFile(k.files.CA)
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, nil, fmt.Errorf("%s holds no certificate", k.files.CA)
	}
	cert, err := tls.LoadX509KeyPair(k.files.Cert, k.files.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("%s and %s: %w", k.files.Cert, k.files.Key, err)
	}
	return &cert, roots, nil
}

// current returns the contents of the files, which it reads again after a change.
func (k *Keyring) current() (*tls.Certificate, *x509.CertPool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen, err := k.stat()
	if err == nil && seen == k.seen {
		return k.cert, k.roots
	}
	var cert *tls.Certificate
	var roots *x509.CertPool
	if err == nil {
		cert, roots, err = k.read()
	}
	if err == nil {
		_, err = k.verify(cert.Leaf, roots, k.isSelf)
	}
	if err == nil {
		k.cert, k.roots = cert, roots
		k.logger.Info("certificate read again", "valid_until", cert.Leaf.NotAfter)
	} else if k.bad == nil || k.bad.Error() != err.Error() {
		k.logger.Error("certificate files changed and cannot be used; the ones from before stay in use", "error", err)
	}
	// Unusable contents are read only once, too.
	k.seen, k.bad = seen, err
	return k.cert, k.roots
}

// ServerConfig accepts the nodes of this stamp and location for which allowed is true, and all
// nodes of the paired location, if any. The server decides what each may call.
func (k *Keyring) ServerConfig(allowed func(geo.NodeID) bool, paired geo.Location) *tls.Config {
	return k.serverConfig(func(id Identity) error { return k.isPeer(id, allowed, paired) })
}

// HopServerConfig accepts the front ends of the deployment: the nodes that ServerConfig accepts,
// and the gateways of the stamp.
func (k *Keyring) HopServerConfig(allowed func(geo.NodeID) bool, paired geo.Location) *tls.Config {
	return k.serverConfig(func(id Identity) error {
		if id.Gateway != "" {
			return nil
		}
		return k.isPeer(id, allowed, paired)
	})
}

// LocationsServerConfig accepts the nodes of the given locations.
func (k *Keyring) LocationsServerConfig(locations ...geo.Location) *tls.Config {
	return k.serverConfig(func(id Identity) error {
		if id.Gateway != "" || !slices.Contains(locations, id.Location) {
			return fmt.Errorf("a node of %v is expected", locations)
		}
		return nil
	})
}

func (k *Keyring) isPeer(id Identity, allowed func(geo.NodeID) bool, paired geo.Location) error {
	if paired != "" && id.Location == paired {
		return nil
	}
	if err := isAt(id, k.self.Location); err != nil {
		return err
	}
	if !allowed(id.Node) {
		return fmt.Errorf("node %d is no peer of this one", id.Node)
	}
	return nil
}

func (k *Keyring) serverConfig(check func(Identity) error) *tls.Config {
	config := k.config()
	config.ClientAuth = tls.RequireAnyClientCert
	// Each handshake is checked against the current files: no resumption.
	config.SessionTicketsDisabled = true
	config.VerifyConnection = k.verifyPeer(check)
	return config
}

// ClientConfig connects to one node of this stamp and location, and to no other.
func (k *Keyring) ClientConfig(want geo.NodeID) *tls.Config {
	return k.clientConfig(func(id Identity) error {
		if err := isAt(id, k.self.Location); err != nil {
			return err
		}
		if id.Node != want {
			return fmt.Errorf("it is node %d, and node %d is configured for this address", id.Node, want)
		}
		return nil
	})
}

// PairConfig connects to any node of the paired location.
func (k *Keyring) PairConfig(paired geo.Location) *tls.Config {
	return k.clientConfig(func(id Identity) error { return isAt(id, paired) })
}

// HopClientConfig connects to any node of the given locations.
func (k *Keyring) HopClientConfig(locations ...geo.Location) *tls.Config {
	return k.clientConfig(func(id Identity) error {
		if id.Gateway != "" || !slices.Contains(locations, id.Location) {
			return fmt.Errorf("a node of %v is expected", locations)
		}
		return nil
	})
}

func isAt(id Identity, l geo.Location) error {
	if id.Location != l {
		return fmt.Errorf("it is of location %q, and %q belongs here", id.Location, l)
	}
	return nil
}

func (k *Keyring) clientConfig(check func(Identity) error) *tls.Config {
	config := k.config()
	// Instead of the host name VerifyConnection checks chain, time and identity.
	config.InsecureSkipVerify = true
	config.ServerName = k.self.Stamp
	config.VerifyConnection = k.verifyPeer(check)
	return config
}

func (k *Keyring) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		Time:       k.clock.Now,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert, _ := k.current()
			return cert, nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, _ := k.current()
			return cert, nil
		},
	}
}

func (k *Keyring) verifyPeer(check func(Identity) error) func(tls.ConnectionState) error {
	return func(cs tls.ConnectionState) error {
		_, roots := k.current()
		if len(cs.PeerCertificates) == 0 {
			return fmt.Errorf("%w: no certificate", ErrRefused)
		}
		_, err := k.verify(cs.PeerCertificates[0], roots, check)
		return err
	}
}

// isSelf refuses a certificate of another process.
func (k *Keyring) isSelf(id Identity) error {
	if err := isAt(id, k.self.Location); err != nil {
		return err
	}
	if id.Gateway != k.self.Gateway {
		return fmt.Errorf("it is that of the gateway %q, this is %q", id.Gateway, k.self.Gateway)
	}
	if id.Node != k.self.Node {
		return fmt.Errorf("it is that of node %d, this is node %d", id.Node, k.self.Node)
	}
	return nil
}

// verify checks signature, time and stamp of a certificate, and the rest of its name by check.
func (k *Keyring) verify(cert *x509.Certificate, roots *x509.CertPool, check func(Identity) error) (Identity, error) {
	_, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: k.clock.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return Identity{}, fmt.Errorf("%w: certificate of %q: %w", ErrRefused, cert.Subject.CommonName, err)
	}
	id, err := Of(cert)
	switch {
	case err != nil:
	case k.self.Stamp != "" && id.Stamp != k.self.Stamp:
		err = fmt.Errorf("it is of stamp %q, this is %q", id.Stamp, k.self.Stamp)
	default:
		err = check(id)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %s: %w", ErrRefused, id, err)
	}
	return id, nil
}
