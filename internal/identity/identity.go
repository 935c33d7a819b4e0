package identity

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"antipode/geo"
)

// Identity is the name of a node or a gateway. A certificate has it as its only URI of the scheme
// antipode: antipode://<stamp>/<location>/node/<id> or antipode://<stamp>/gateway/<name>.
type Identity struct {
	// Stamp is the name of the authority. Stamps of one name trust each other.
	Stamp    string
	Location geo.Location
	Node     geo.NodeID
	// Gateway is the name of a gateway, which has neither location nor number. Empty for a node.
	Gateway string
}

const scheme = "antipode"

// ErrName means that a certificate or text names neither a node nor a gateway.
var ErrName = errors.New("no name of a node or a gateway")

// URL is the identity as written in a certificate.
func (i Identity) URL() *url.URL {
	if i.Gateway != "" {
		return &url.URL{Scheme: scheme, Host: i.Stamp, Path: "/gateway/" + i.Gateway}
	}
	return &url.URL{Scheme: scheme, Host: i.Stamp, Path: fmt.Sprintf("/%s/node/%d", i.Location, i.Node)}
}

func (i Identity) String() string { return i.URL().String() }

// Validate refuses names that a URL would escape, so that each name has one spelling.
func (i Identity) Validate() error {
	switch {
	case !ValidLabel(i.Stamp):
		return fmt.Errorf("stamp name %q: want %s", i.Stamp, LabelWords)
	case i.Gateway != "":
		if !ValidLabel(i.Gateway) || i.Location != "" || i.Node != 0 {
			return fmt.Errorf("gateway %q: want %s, and neither location nor number", i.Gateway, LabelWords)
		}
	case !ValidLabel(string(i.Location)):
		return fmt.Errorf("location %q: want %s", i.Location, LabelWords)
	case i.Node == 0:
		return errors.New("node 0: nodes are numbered from 1")
	}
	return nil
}

// LabelWords describes what ValidLabel accepts, for error messages.
const LabelWords = "1 to 63 lower-case letters, digits and hyphens, a letter or digit at both ends"

// ValidLabel reports whether s can name a stamp or a location: a label of DNS in
// lower case.
func ValidLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Parse is the inverse of String. It also accepts formerGateway in the place of "gateway". The
// error wraps ErrName.
func Parse(text string) (Identity, error) {
	rest, ok := strings.CutPrefix(text, scheme+"://")
	parts := strings.Split(rest, "/")
	if ok && len(parts) == 3 && (parts[1] == "gateway" || parts[1] == formerGateway) {
		id := Identity{Stamp: parts[0], Gateway: parts[2]}
		if id.Gateway == "" || id.Validate() != nil {
			return Identity{}, fmt.Errorf("%w: %q", ErrName, text)
		}
		return id, nil
	}
	if !ok || len(parts) != 4 || parts[2] != "node" {
		return Identity{}, fmt.Errorf("%w: %q", ErrName, text)
	}
	number, err := strconv.ParseUint(parts[3], 10, 64)
	id := Identity{Stamp: parts[0], Location: geo.Location(parts[1]), Node: geo.NodeID(number)}
	if err != nil || id.Validate() != nil || id.String() != text {
		return Identity{}, fmt.Errorf("%w: %q", ErrName, text)
	}
	return id, nil
}

// Of reads the identity from a certificate: exactly one URI of our scheme. It proves
// nothing by itself; Keyring checks the signature. The error wraps ErrName.
func Of(cert *x509.Certificate) (Identity, error) {
	var found []*url.URL
	for _, u := range cert.URIs {
		if u.Scheme == scheme {
			found = append(found, u)
		}
	}
	if len(found) != 1 {
		return Identity{}, fmt.Errorf("%w: certificate of %q holds %d", ErrName, cert.Subject.CommonName, len(found))
	}
	return Parse(found[0].String())
}
