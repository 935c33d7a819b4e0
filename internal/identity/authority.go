package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"time"
)

// backdate is how far before now a certificate begins: the clocks of nodes differ.
const backdate = 5 * time.Minute

// Pair is a certificate and its private key, both PEM.
type Pair struct{ Cert, Key []byte }

// NewAuthority makes the authority of a stamp, ECDSA P-256, valid from now for the given time.
func NewAuthority(stamp string, now time.Time, valid time.Duration) (Pair, error) {
	if !ValidLabel(stamp) {
		return Pair{}, fmt.Errorf("stamp name %q: want %s", stamp, LabelWords)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	template, err := newTemplate("Antipode stamp "+stamp, now, valid)
	if err != nil {
		return Pair{}, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	template.URIs = []*url.URL{{Scheme: scheme, Host: stamp}}
	return sign(template, template, key, key)
}

// Authority signs the certificates of a stamp's nodes.
type Authority struct {
	stamp string
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
}

// OpenAuthority opens an authority that NewAuthority made.
func OpenAuthority(p Pair) (*Authority, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA || len(pair.Leaf.URIs) != 1 || pair.Leaf.URIs[0].Scheme != scheme {
		return nil, errors.New("not the authority of a stamp")
	}
	return &Authority{stamp: pair.Leaf.URIs[0].Host, cert: pair.Leaf, key: key}, nil
}

// Stamp is the name of the stamp.
func (a *Authority) Stamp() string { return a.stamp }

// NodeOptions describes a certificate to make.
type NodeOptions struct {
	// Identity names the node or gateway; its Stamp must be that of the authority.
	Identity Identity
	// Hosts are the names and IP addresses of the process. Peers check its identity instead;
	// hosts are for other tools.
	Hosts []string
	// Valid is the lifetime of the certificate, which must end before the authority's.
	Valid time.Duration
}

// NewNode makes key and certificate of a node or a gateway, for both ends of a connection.
func (a *Authority) NewNode(o NodeOptions, now time.Time) (Pair, error) {
	o.Identity.Stamp = a.stamp
	if err := o.Identity.Validate(); err != nil {
		return Pair{}, err
	}
	name := fmt.Sprintf("Antipode node %s-%d", o.Identity.Location, o.Identity.Node)
	if o.Identity.Gateway != "" {
		name = "Antipode gateway " + o.Identity.Gateway
	}
	template, err := newTemplate(name, now, o.Valid)
	if err != nil {
		return Pair{}, err
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		return Pair{}, fmt.Errorf("the certificate would end %s, after that of its authority, %s: make it shorter, or a new authority",
			template.NotAfter.Format(time.DateOnly), a.cert.NotAfter.Format(time.DateOnly))
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.URIs = []*url.URL{o.Identity.URL()}
	for _, h := range o.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	return sign(template, a.cert, key, a.key)
}

func newTemplate(name string, now time.Time, valid time.Duration) (*x509.Certificate, error) {
	if valid <= 0 {
		return nil, fmt.Errorf("valid for %s: want a time above zero", valid)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(valid),
	}, nil
}

// sign makes a certificate from a template for the holder of key.
func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}
