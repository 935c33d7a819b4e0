package auth

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
)

// DateWindow is how old the date of a signed request may be, and the usual value
// of Verifier.FutureSkew.
const DateWindow = 15 * time.Minute

// variantTextMax is the longest string to sign, in bytes, for which more than the
// first candidate is tried. Metadata and URL are shorter together.
const variantTextMax = 32 << 10

// hashesMax bounds the signatures that are computed for one request, over all candidates
// and both keys: a stranger pays nothing for them.
const hashesMax = 8

const (
	headerAuthorization = "Authorization"
	headerDate          = "X-Ms-Date"
)

// Keys are the two keys of an account, decoded. Both are valid at all times; an
// empty one verifies nothing.
type Keys struct{ Key1, Key2 []byte }

// count is how many keys there are to try, one at least.
func (k Keys) count() int {
	if len(k.Key1) == 0 || len(k.Key2) == 0 || bytes.Equal(k.Key1, k.Key2) {
		return 1
	}
	return 2
}

// Verifier checks signatures. Its fields are set before first use and it is not
// copied afterwards; Verify may be called concurrently.
type Verifier struct {
	// Clock checks the date of requests.
	Clock clock.Clock
	// FutureSkew is how far ahead of Clock a date may be; DateWindow in a server.
	// Zero accepts any: a signature made for next year can then be used until then.
	FutureSkew time.Duration
	// AcceptSwappedEncoding also accepts Content-Language signed in the place of
	// Content-Encoding, as one client does. Those two headers can then be exchanged
	// on the way without breaking a signature.
	AcceptSwappedEncoding bool

	// spare holds *scratch.
	spare sync.Pool
}

// Verify returns nil when the request is signed with one of the account's keys.
// The target, the query and the effective version are those of the request.
//
// Afterwards the request is what was signed, and nothing else may be read from it. If
// the client signed without its empty-valued parameters, they are removed from *q; they
// must have no effect before. If it signed one space for each run of white space, the
// x-ms- headers of r have that. What no scheme signs is left as it is: see
// protocol/auth.md 12.
//
// Errors: 400 InvalidAuthenticationInfo for a header of another form; 403
// AuthenticationFailed, with an AuthenticationErrorDetail, for a date outside the
// window, another account or a wrong signature; 401 for a bearer token; and for a
// request without the header what NoCredentials says: see VerifySAS.
func (v *Verifier) Verify(r *http.Request, t protocol.Target, q *protocol.Query, version protocol.Version, keys Keys) error {
	return v.verify(r, t, q, version, keys, false)
}

// verify is Verify, also of a part of a batch.
func (v *Verifier) verify(r *http.Request, t protocol.Target, q *protocol.Query, version protocol.Version, keys Keys, part bool) error {
	values := r.Header[headerAuthorization]
	switch {
	case len(values) == 0:
		return NoCredentials(t.Service, version)
	case len(values) > 1:
		return storageerr.InvalidAuthentication
	}
	a, err := parseAuthorization(values[0])
	if err != nil {
		return err
	}
	if a.scheme == bearer {
		return refuseBearer(t.Service, version)
	}
	if a.account != string(t.SignedAs()) {
		return failed("The account in the Authorization header is not the account of the request's URL.")
	}
	if err := v.checkDate(r.Header); err != nil {
		return err
	}
	m := messageOf(r, t, *q, version, a.scheme)
	if part && m.unversioned { // Its version is that of the batch, which no header of it repeats.
		m.unversioned, m.layout = false, layoutFull
	}
	way, err := v.match(&m, a.signature, keys)
	if err != nil {
		return err
	}
	if way&noEmptyParams != 0 {
		*q = q.WithoutEmpty()
	}
	if way&spacesCollapsed != 0 {
		collapseHeaders(r.Header)
	}
	return nil
}

// NoCredentials is the answer to a request that is not public and carries no
// credentials: on tables 403 AuthenticationFailed, or 401 from 2020-12-06; on
// blobs and queues 404 ResourceNotFound, or 401 from 2019-12-12. A 401 is
// NoAuthenticationInformation; protocol.WriteError adds its WWW-Authenticate.
func NoCredentials(s geo.Service, version protocol.Version) error {
	switch {
	case s == geo.Table && version < protocol.Version20201206:
		return failed("Authorization is mandatory. Cannot be empty")
	case version < protocol.Version20191212:
		return storageerr.ResourceNotFound
	}
	return storageerr.NoAuthentication
}

func refuseBearer(s geo.Service, version protocol.Version) error {
	if s == geo.Table && version < protocol.Version20201206 {
		return failed("Bearer tokens are not supported.")
	}
	return storageerr.BearerRefused
}

// failed is 403 AuthenticationFailed with the reason clients and tools read.
func failed(detail string) error {
	return storageerr.AuthenticationFailed.With("AuthenticationErrorDetail", detail)
}

func (v *Verifier) checkDate(h http.Header) error {
	text := requestDate(h)
	date, ok := wire.ParseHTTPTime(text)
	if !ok {
		return failed("Request date header not specified")
	}
	age := v.Clock.Now().Sub(date)
	switch {
	case age > DateWindow:
		return failed("Request date header too old: '" + text + "'")
	case v.FutureSkew > 0 && -age > v.FutureSkew:
		return failed("Request date header too far in the future: '" + text + "'")
	}
	return nil
}

func messageOf(r *http.Request, t protocol.Target, q protocol.Query, version protocol.Version, s scheme) message {
	m := message{
		method: r.Method, header: r.Header, length: r.ContentLength,
		account: t.SignedAs(), path: t.RawPath, query: q, version: version,
		table: t.Service == geo.Table, suffixed: t.PathStyle && t.Secondary,
	}
	m.unversioned = !m.table && s == sharedKey && r.Header[protocol.HeaderVersion] == nil
	switch {
	case m.table && s == sharedKeyLite:
		m.layout = layoutTableLite
	case m.table:
		m.layout = layoutTable
	case s == sharedKeyLite, version < protocol.Version20090919, m.unversioned:
		m.layout = layoutLite
	}
	return m
}

// match finds the way and the key with which the signature was made. Nearly every
// request matches the first candidate, so which others there are is asked only
// after it failed.
func (v *Verifier) match(m *message, signature string, keys Keys) (variant, error) {
	s, _ := v.spare.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	defer v.keep(s)

	s.text = s.append(s.text[:0], m, 0)
	s.signature = append(s.signature[:0], signature...)
	var mac [sha256.Size]byte
	if m.layout == layoutFull && ambiguous(m.query) {
		return 0, failed("A query parameter cannot be signed: a colon or a line feed in its name, or a line feed in its value.")
	}
	if decodeSignature(&mac, s.signature) {
		s.hashes = 0
		if s.signed(&mac, keys) {
			return 0, nil
		}
		if way, ok := v.matchOther(s, m, &mac, keys); ok {
			return way, nil
		}
	}
	s.text = s.append(s.text[:0], m, 0)
	return 0, failed("The MAC signature found in the HTTP request '" + signature +
		"' is not the same as any computed signature. Server used following string to sign: '" +
		string(s.text) + "'.")
}

// matchOther tries every candidate but the first.
func (v *Verifier) matchOther(s *scratch, m *message, mac *[sha256.Size]byte, keys Keys) (variant, bool) {
	if len(s.text) > variantTextMax {
		return 0, false
	}
	possible := v.variants(s, m)
	if ambiguous(m.query) {
		possible &^= fullLayout
	}
	for _, way := range possible.candidates(hashesMax/keys.count() - 1) {
		s.text = s.append(s.text[:0], m, way)
		if s.signed(mac, keys) {
			return way, true
		}
	}
	return 0, false
}

// candidates returns up to n combinations of the ways that are possible, but the first
// candidate, which is none of them: all combinations where they are that few. Else clients
// are taken to differ in everything that they can differ in, or in one thing.
func (possible variant) candidates(n int) []variant {
	var all []variant
	legal := func(way variant) bool { return way&(quotesEncoded|quotesRaw) != quotesEncoded|quotesRaw }
	// Steps through the subsets of possible in ascending order.
	for way := -possible & possible; way != 0 && len(all) <= n; way = (way - possible) & possible {
		if legal(way) {
			all = append(all, way)
		}
	}
	if len(all) <= n {
		return all
	}
	few := []variant{possible &^ quotesRaw}
	if !legal(possible) {
		few = append(few, possible&^quotesEncoded)
	}
	for _, way := range [...]variant{
		fullLayout, noSuffix, byteSorted, noEmptyParams, quotesEncoded, quotesRaw, spacesCollapsed, noZeroLength, swappedEncoding,
	} {
		if possible&way != 0 {
			few = append(few, way)
		}
	}
	return few[:min(n, len(few))]
}

// variants returns the ways that would change this request's string. A way may be
// possible and change nothing together with another; then it is tried in vain.
func (v *Verifier) variants(s *scratch, m *message) variant {
	var possible variant
	if !m.table {
		possible |= v.headerVariants(s, m)
	} else {
		if strings.Contains(m.path, "'") {
			possible |= quotesEncoded
		}
		if strings.Contains(m.path, "%27") {
			possible |= quotesRaw
		}
	}
	full := m.layout == layoutFull || possible&fullLayout != 0
	for _, p := range m.query {
		if p.Value == "" && (full || p.Name == "comp") { // The other layouts sign no other one.
			possible |= noEmptyParams
		}
	}
	if m.suffixed {
		possible |= noSuffix
	}
	return possible
}

// headerVariants is the part of variants for the layouts that sign headers.
func (v *Verifier) headerVariants(s *scratch, m *message) (possible variant) {
	s.collect(m.header, 0)
	for i, h := range s.headers {
		if i > 0 && byteOrder(s.headers[i-1].name, h.name) > 0 {
			possible |= byteSorted
		}
		for _, value := range h.values {
			if trimmed := trim(value); strings.ContainsAny(trimmed, blanks) && collapse(trimmed) != trimmed {
				possible |= spacesCollapsed
			}
		}
	}
	if (m.layout == layoutFull || m.unversioned) && m.version < protocol.Version20150221 && joined(m.header, "Content-Length") == "0" {
		possible |= noZeroLength
	}
	if v.AcceptSwappedEncoding && joined(m.header, "Content-Encoding") != joined(m.header, "Content-Language") {
		possible |= swappedEncoding
	}
	if m.unversioned {
		possible |= fullLayout
	}
	return possible
}
