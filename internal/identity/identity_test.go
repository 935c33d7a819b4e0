package identity

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

var testNow = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// A name has one spelling: what parses prints the same, and everything else is refused
// (table).
func TestParse(t *testing.T) {
	for _, text := range []string{"antipode://prod/north/node/1", "antipode://a/b-2/node/18446744073709551615", "antipode://prod/gateway/east-1", "antipode://prod/gateway/node/1"} {
		id, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, text, id.String())
	}
	for _, text := range []string{
		"", "antipode://", "antipode://prod/north/node/0", "antipode://prod/north/node/01", "antipode://prod/north/node/+1",
		"antipode://prod/north/node/1/", "antipode://prod//node/1", "antipode://Prod/north/node/1", "antipode://prod/no%72th/node/1",
		"antipode://prod/gateway/", "antipode://prod/gateway", "antipode://prod/gateway/East", "antipode://prod/gateway/a/b", "antipode:///gateway/a", "antipode://prod/gateway/a?x",
		"antipode://prod/north/admin/1", "https://prod/north/node/1", "antipode://-prod/north/node/1", "antipode://prod/north/node/1?x",
	} {
		_, err := Parse(text)
		require.ErrorIs(t, err, ErrName, text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("antipode://prod/north/node/1")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Parse(text)
		if err == nil {
			require.Equal(t, text, id.String())
		}
	})
}

func leaf(t *testing.T, p Pair) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(p.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

// An authority signs nodes of its stamp, within its lifetime, and its name
// survives its files; the node's certificate holds hosts, addresses and one identity.
func TestAuthority(t *testing.T) {
	pair, err := NewAuthority("prod", testNow, 10*time.Hour)
	require.NoError(t, err)
	a, err := OpenAuthority(pair)
	require.NoError(t, err)
	require.Equal(t, "prod", a.Stamp())

	node := NodeOptions{Identity: Identity{Location: "north", Node: 2}, Hosts: []string{"n2.example", "10.0.0.2"}, Valid: time.Hour}
	made, err := a.NewNode(node, testNow)
	require.NoError(t, err)
	cert := leaf(t, made)
	id, err := Of(cert)
	require.NoError(t, err)
	require.Equal(t, Identity{Stamp: "prod", Location: "north", Node: 2}, id)
	require.Equal(t, []string{"n2.example"}, cert.DNSNames)
	require.Equal(t, "10.0.0.2", cert.IPAddresses[0].String())
	require.Equal(t, testNow.Add(time.Hour), cert.NotAfter)

	node.Valid = 11 * time.Hour
	_, err = a.NewNode(node, testNow)
	require.ErrorContains(t, err, "after that of its authority")
	node.Valid = 0
	_, err = a.NewNode(node, testNow)
	require.Error(t, err)
	node.Valid, node.Identity.Node = time.Hour, 0
	_, err = a.NewNode(node, testNow)
	require.Error(t, err)
	_, err = NewAuthority("Prod!", testNow, time.Hour)
	require.Error(t, err)
	_, err = OpenAuthority(made)
	require.ErrorContains(t, err, "not the authority")

	cert.URIs = append(cert.URIs, &url.URL{Scheme: "antipode", Host: "prod"})
	_, err = Of(cert)
	require.ErrorIs(t, err, ErrName, "two names")
	cert.URIs = nil
	_, err = Of(cert)
	require.ErrorIs(t, err, ErrName, "no name")
	require.True(t, ValidLabel(string(geo.Location("north-1"))))
}
