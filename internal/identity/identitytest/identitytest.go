// Package identitytest makes the certificates and keyrings that tests of connections need.
package identitytest

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/internal/identity"
)

// Authority signs certificates for 127.0.0.1 that are valid for an hour.
type Authority struct {
	t      testing.TB
	signer *identity.Authority
	cert   []byte
}

// NewAuthority returns the authority of a stamp named prod.
func NewAuthority(t testing.TB) Authority {
	t.Helper()
	pair, err := identity.NewAuthority("prod", clock.System{}.Now(), 24*time.Hour)
	require.NoError(t, err)
	signer, err := identity.OpenAuthority(pair)
	require.NoError(t, err)
	return Authority{t, signer, pair.Cert}
}

// Files writes a fresh certificate, with its key and the authority's own certificate.
func (a Authority) Files(id identity.Identity) identity.Files {
	a.t.Helper()
	o := identity.NodeOptions{Identity: id, Valid: time.Hour}
	if id.Gateway == "" {
		o.Hosts = []string{"127.0.0.1"}
	}
	pair, err := a.signer.NewNode(o, clock.System{}.Now())
	require.NoError(a.t, err)
	dir := a.t.TempDir()
	files := identity.Files{CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "node.crt"), Key: filepath.Join(dir, "node.key")}
	for name, data := range map[string][]byte{files.CA: a.cert, files.Cert: pair.Cert, files.Key: pair.Key} {
		require.NoError(a.t, os.WriteFile(name, data, 0o600))
	}
	return files
}

// Keyring opens the keyring of a process with a fresh certificate.
func (a Authority) Keyring(id identity.Identity, c clock.Clock) *identity.Keyring {
	a.t.Helper()
	k, err := identity.OpenKeyring(id, a.Files(id), c, slog.New(slog.DiscardHandler))
	require.NoError(a.t, err)
	return k
}
