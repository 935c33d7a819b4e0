package admin

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
)

// TokenFileName is the usual name of the file within a data folder.
const TokenFileName = "admin-token"

// TokenFile is the token that a port asks for, and the file it is kept in. The zero value
// has none: the port then shows no keys and changes nothing.
type TokenFile struct {
	path  string
	token wire.Token
}

// Token is what callers present.
func (f TokenFile) Token() wire.Token { return f.token }

// OpenTokenFile reads the token in a file, which is made with mode 600 if it is missing.
// Several processes may share one file, and start at once: one makes it, whole and durable
// before it has its name, the others read it.
func OpenTokenFile(path string) (TokenFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return TokenFile{}, err
	}
	token, err := wire.ReadTokenFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeTokenFile(path); err == nil {
			token, err = wire.ReadTokenFile(path)
		}
	}
	if err != nil {
		return TokenFile{}, fmt.Errorf("token of the admin port: %w", err)
	}
	return TokenFile{path, token}, nil
}

func makeTokenFile(path string) (err error) {
	token, err := wire.NewToken()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".admin-token-*") // Mode 600.
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(string(token) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// A link, unlike a rename, never replaces the token of a process that was faster.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// withToken asks for the token before it serves.
func (p *port) withToken(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if p.o.TokenFile.token == "" {
			return &wire.Error{Status: http.StatusForbidden, Code: codeNoToken, Message: Sentence("serve", route(r),
				"this port has no token, so it shows no keys and changes nothing: name a token file in the server's configuration")}
		}
		presented, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bearer || !p.o.TokenFile.token.Is(presented) {
			c.Response().Header().Set("WWW-Authenticate", `Bearer realm="antipode admin"`)
			why := "this needs the admin token"
			if bearer {
				why = "the admin token presented is another one than this server's"
			}
			return &wire.Error{Status: http.StatusUnauthorized, Code: wire.CodeToken, Message: Sentence("serve", route(r), why)}
		}
		return next(c)
	}
}

// tokenFile answers GET /v1/token-file: where a client on this machine finds the token, and
// proof that this server has it (wire.Token.Prove). It shows nothing of the token.
func (p *port) tokenFile(c echo.Context) error {
	r := c.Request()
	challenge, err := hex.DecodeString(r.URL.Query().Get("challenge"))
	if err != nil || len(challenge) != wire.ChallengeBytes {
		return Invalid("serve", route(r), fmt.Sprintf("the challenge must be %d bytes in hexadecimal", wire.ChallengeBytes))
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if p.o.TokenFile.token == "" || !ok {
		return &wire.Error{Status: http.StatusNotFound, Code: codeNoToken, Message: Sentence("serve", route(r), "this port has no token file")}
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return answer(c, http.StatusOK, wire.TokenFile{Path: p.o.TokenFile.path, Proof: p.o.TokenFile.token.Prove(challenge, local.AddrPort())})
}
