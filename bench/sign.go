package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// serviceVersion is the x-ms-version of every request.
const serviceVersion = "2019-02-02"

// target is where requests go and as whom, taken from Options.
type target struct {
	// address is host and port, and host what the Host header says.
	address, host string
	// prefix is the account's path, "/devstoreaccount1" or with -secondary.
	prefix  string
	account string
	key     []byte
}

// newTarget reads a validated endpoint.
func newTarget(o Options, secondary bool) (target, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return target{}, err
	}
	key, err := base64.StdEncoding.DecodeString(o.Key)
	if err != nil {
		return target{}, err
	}
	t := target{address: u.Host, host: u.Host, prefix: u.Path, account: o.Account, key: key}
	if secondary {
		t.prefix += "-secondary"
	}
	return t, nil
}

// signer writes the head of signed requests. One belongs to each connection: it
// keeps the date's text of the current second and its own HMAC state.
type signer struct {
	target
	mac    hash.Hash
	second int64
	date   string
	sum    [sha256.Size]byte
	text   []byte
}

func newSigner(t target) *signer {
	return &signer{target: t, mac: hmac.New(sha256.New, t.key), second: -1}
}

// setTime makes date the text of now; it changes once a second.
func (s *signer) setTime(now time.Time) {
	if second := now.Unix(); second != s.second {
		s.second, s.date = second, now.UTC().Format(http.TimeFormat)
	}
}

// call is what differs between requests. Path is below the account and encoded.
type call struct {
	method, path string
	// query is without the question mark; canonical is its signed form for
	// SharedKey ("\ncomp:list"), and comp its comp parameter for tables.
	query, canonical string
	// headers are complete lines, and signed the canonical form of those whose
	// names begin with x-ms- and sort before x-ms-date.
	headers, signed string
	// signedLast is the canonical form of those that sort between x-ms-date and x-ms-version. They are sent from it.
	signedLast  string
	contentType string
	body        []byte
	blob        bool
	// part is a request in the body of a batch, whose version is the batch's.
	part bool
	// status is the only one that is right; zero is each that means success.
	status int
}

// append appends the whole request to b.
func (s *signer) append(b []byte, c *call, now time.Time) []byte {
	s.setTime(now)
	b = append(b, c.method...)
	b = append(b, ' ')
	b = append(b, s.prefix...)
	b = append(b, c.path...)
	if c.query != "" {
		b = append(b, '?')
		b = append(b, c.query...)
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, s.host...)
	b = append(b, "\r\nx-ms-date: "...)
	b = append(b, s.date...)
	if !c.part {
		b = append(b, "\r\nx-ms-version: "+serviceVersion...)
	}
	b = append(b, "\r\nAuthorization: "...)
	if c.blob {
		b = append(b, "SharedKey "...)
		s.text = s.blobText(s.text[:0], c)
	} else {
		b = append(b, "SharedKeyLite "...)
		s.text = s.tableText(s.text[:0], c)
	}
	b = append(b, s.account...)
	b = append(b, ':')
	s.mac.Reset()
	_, _ = s.mac.Write(s.text)
	b = base64.StdEncoding.AppendEncode(b, s.mac.Sum(s.sum[:0]))
	b = append(b, "\r\n"...)
	b = append(b, c.headers...)
	for line := range strings.Lines(c.signedLast) {
		b = append(append(b, line[:len(line)-1]...), "\r\n"...)
	}
	if c.contentType != "" {
		b = append(b, "Content-Type: "...)
		b = append(b, c.contentType...)
		b = append(b, "\r\n"...)
	}
	if len(c.body) > 0 || c.method != http.MethodGet {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(c.body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, c.body...)
}

// tableText is the SharedKeyLite string of the table service (protocol/auth.md 11).
func (s *signer) tableText(b []byte, c *call) []byte {
	b = append(b, s.date...)
	b = append(b, "\n/"...)
	b = append(b, s.account...)
	b = append(b, s.prefix...)
	return append(b, c.path...)
}

// blobText is the SharedKey string of the blob service (protocol/auth.md 5 to 8).
func (s *signer) blobText(b []byte, c *call) []byte {
	b = append(b, c.method...)
	b = append(b, "\n\n\n"...)
	if len(c.body) > 0 {
		b = strconv.AppendInt(b, int64(len(c.body)), 10)
	}
	b = append(b, "\n\n"...)
	b = append(b, c.contentType...)
	b = append(b, "\n\n\n\n\n\n\n"...)
	b = append(b, c.signed...)
	b = append(b, "x-ms-date:"...)
	b = append(b, s.date...)
	b = append(b, '\n')
	b = append(b, c.signedLast...)
	if !c.part {
		b = append(b, "x-ms-version:"+serviceVersion+"\n"...)
	}
	b = append(b, '/')
	b = append(b, s.account...)
	b = append(b, s.prefix...)
	b = append(b, c.path...)
	return append(b, c.canonical...)
}
