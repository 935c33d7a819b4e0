package admin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// Token is the secret of an admin port: with it a caller may read keys and change things. It is sent
// as "Authorization: Bearer" and kept in a file that the server makes.
type Token string

const (
	tokenPrefix = "antipode-admin-"
	tokenBytes  = 32
	// tokenFileMax bounds what is read of a token file, in bytes.
	tokenFileMax = 256
	// ChallengeBytes is the length of a challenge, which is sent in hex.
	ChallengeBytes = 32
)

// ErrNoToken means that a text or a file is not a token.
var ErrNoToken = errors.New("no admin token")

// NewToken makes a token.
func NewToken() (Token, error) {
	var b [tokenBytes]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return Token(tokenPrefix + hex.EncodeToString(b[:])), nil
}

// ParseToken accepts a token with blanks around it. The error wraps ErrNoToken and does
// not repeat the text, which may be another secret.
func ParseToken(text string) (Token, error) {
	t := strings.TrimSpace(text)
	digits, ok := strings.CutPrefix(t, tokenPrefix)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != tokenBytes || digits != strings.ToLower(digits) {
		return "", fmt.Errorf("%w: want %s and %d hexadecimal digits", ErrNoToken, tokenPrefix, 2*tokenBytes)
	}
	return Token(t), nil
}

// String hides the token from logs and error messages.
func (t Token) String() string { return "(admin token)" }

// Is compares in constant time. An empty token equals nothing.
func (t Token) Is(presented string) bool {
	want, got := sha256.Sum256([]byte(t)), sha256.Sum256([]byte(presented))
	return t != "" && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// Prove computes how a server proves that it has the token, without showing it, to a
// client that sent a challenge over a connection to the address server. The address is
// part of the proof: a process on another port cannot pass the challenge on to the real
// server and return its proof.
func (t Token) Prove(challenge []byte, server netip.AddrPort) string {
	h := hmac.New(sha256.New, []byte(t))
	_, _ = fmt.Fprintf(h, "antipode admin port %s\n%x", netip.AddrPortFrom(server.Addr().Unmap(), server.Port()), challenge)
	return hex.EncodeToString(h.Sum(nil))
}

// ReadTokenFile reads a token. The file must be regular, short, and closed to users other
// than its owner and group. It is opened without waiting, so that a pipe or device in its
// place does no harm.
func ReadTokenFile(path string) (_ Token, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file: %w", path, ErrNoToken)
	case info.Mode().Perm()&0o007 != 0:
		return "", fmt.Errorf("%s is open to every user of the machine: chmod 600 %s, and make a new token if somebody may have read it", path, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, tokenFileMax))
	if err != nil {
		return "", err
	}
	t, err := ParseToken(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// TokenFile is the answer of GET /v1/token-file?challenge=HEX.
type TokenFile struct {
	// Path is the token's file on the server's machine; absolute.
	Path string `json:"path"`
	// Proof is Token.Prove of the challenge and the address that the request came to.
	Proof string `json:"proof"`
}
