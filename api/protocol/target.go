package protocol

import (
	"slices"
	"strings"

	"antipode/geo"
	"antipode/services/storageerr"
)

// Target is what a request addresses, cut from its Host and request line without
// changing a byte. It says what was asked for; whether the account exists, or is
// a legal name at all, is the caller's question.
type Target struct {
	// Service is the one the host names, or the listener's in path style.
	Service geo.Service
	// Account is the addressed account without the -secondary suffix. It may be
	// no legal name: see geo.Account.Valid.
	Account geo.Account
	// Secondary reports that the account was addressed with the -secondary suffix.
	Secondary bool
	// Clone reports that the account was addressed with the -drill suffix, which Account is without.
	Clone bool
	// PathStyle reports that the account is the first segment of the path.
	PathStyle bool
	// RawPath is the whole path as sent, account segment included; "/" for an
	// empty one. Signatures cover it.
	RawPath string
	// Resource is the path after the account, still percent-encoded: empty, or
	// beginning with a slash.
	Resource string
	// RawQuery is the query as sent, without the question mark.
	RawQuery string
	// Base is the service root as addressed, with trailing slash: {base} of
	// protocol/table.md 0. In path style it ends in the account segment.
	Base string
}

// ParseTarget reads a Host value and a request target of the origin form
// (/path?query) or the absolute form, whose scheme and authority then win over
// the arguments. The host is matched without case.
//
// A host of the form {account}.{service}.{zone}, under one of the zones, means host
// style for that service, whatever s is, so one listener may serve all three. Any
// other host (an IP literal, localhost, a name without a dot, or a foreign name
// whatever its labels) is path style for s: under a name that is not ours the
// first label says nothing of an account. A target that names no account is 400
// InvalidUri; a missing host is 400 HostInformationNotPresent.
func ParseTarget(s geo.Service, scheme, host, requestURI string, zones ...geo.Zone) (Target, error) {
	rest := requestURI
	if !strings.HasPrefix(rest, "/") {
		var ok bool
		if scheme, host, rest, ok = cutAbsolute(rest); !ok {
			return Target{}, storageerr.InvalidURI
		}
	}
	if host == "" {
		return Target{}, storageerr.NoHostInformation
	}
	if !usableHost(host) || !usablePath(rest) {
		return Target{}, storageerr.InvalidURI
	}
	t := Target{Service: s}
	t.RawPath, t.RawQuery, _ = strings.Cut(rest, "?")
	if t.RawPath == "" {
		t.RawPath = "/"
	}
	if label, named, ok := hostStyle(host, zones); ok {
		t.Service = named
		t.setAccount(label)
		t.Resource = t.RawPath
		t.Base = scheme + "://" + host + "/"
		return t, nil
	}
	segment := t.RawPath[1:]
	if end := strings.IndexByte(segment, '/'); end >= 0 {
		segment, t.Resource = segment[:end], segment[end:]
	}
	if segment == "" {
		return Target{}, storageerr.InvalidURI
	}
	t.PathStyle = true
	t.setAccount(segment)
	t.Base = scheme + "://" + host + "/" + segment + "/"
	return t, nil
}

// setAccount takes the account from a label. The secondary of a clone is no name: it stays an illegal one.
func (t *Target) setAccount(label string) {
	if t.Account, t.Secondary = geo.SplitSecondary(label); !t.Secondary {
		t.Account, t.Clone = geo.SplitClone(label)
	}
}

// SignedAs is the account that a client signs as: the name of a clone with its suffix, since a client knows it as an
// account, and that of a secondary without.
func (t *Target) SignedAs() geo.Account {
	if t.Clone {
		return t.Account + geo.CloneSuffix
	}
	return t.Account
}

// CutAccount takes the host, empty for none, and the path, without its first slash, of a URI in the request's body. It
// returns the path after the account, which only path style has in it. own is false for a URI that names what the request
// does not address: see Admits.
func (t Target) CutAccount(host, path string) (rest string, own bool) {
	segment, after, more := strings.Cut(path, "/")
	if account, _ := geo.SplitSecondary(segment); t.PathStyle && more && account == t.SignedAs() {
		return after, t.Admits(host) && t.owns(segment)
	}
	return path, t.Admits(host)
}

// Part returns what a part of a batch of blobs addresses, whose request line has uri and whose Host header host, empty for
// none. In path style the account may be left out, and in either style the first slash: there are clients of both kinds.
// What names the secondary is WriteOnSecondary, and any other account or service InvalidInput.
func (t Target) Part(uri, host string) (Target, error) {
	if _, at, rest, absolute := cutAbsolute(uri); absolute {
		host, uri = at, rest
	}
	path, query, _ := strings.Cut(strings.TrimPrefix(uri, "/"), "?")
	if !usablePath(path) || !usablePath(query) {
		return Target{}, storageerr.InvalidInput
	}
	resource, own := t.CutAccount(host, path)
	if !own {
		t.Secondary = true
		if _, own = t.CutAccount(host, path); own {
			return Target{}, storageerr.WriteOnSecondary
		}
		return Target{}, storageerr.InvalidInput
	}
	t.RawPath, t.Resource, t.RawQuery = "/"+path, "/"+resource, query
	return t, nil
}

// Admits reports whether the host of a URI in the request's body may be that of its account. Behind a proxy a client
// knows other names than the server, so only one of the form {account}.{service}.{zone} is looked at, under any zone and
// with any labels between account and service, as private links have: with another account or service it names what the
// request does not address.
func (t Target) Admits(host string) bool {
	if !usableHost(host) || strings.HasPrefix(host, ".") || strings.Contains(host, "..") {
		return false
	}
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && !strings.HasSuffix(host, "]") && strings.Trim(host[colon+1:], "0123456789") != "" {
		return false // No port: cutHost would not look at what follows.
	}
	label, s, under := cutHost(host)
	for s == 0 && under != "" {
		_, s, under = cutHost(label + "." + string(under))
	}
	return s == 0 || strings.Contains(t.Base, "://"+host+"/") || s == t.Service && t.owns(label)
}

// owns reports whether a label in the request's body names the addressed account. A client may send to the secondary
// what it has written for the primary. The other way round is refused: what names the secondary is no write.
func (t Target) owns(label string) bool {
	account, secondary := geo.SplitSecondary(label)
	return account == t.SignedAs() && (t.Secondary || !secondary)
}

// cutAbsolute splits http(s)://authority[/path][?query]. rest may be empty.
func cutAbsolute(uri string) (scheme, host, rest string, ok bool) {
	scheme, after, found := strings.Cut(uri, "://")
	if !found {
		return "", "", "", false
	}
	scheme = lowerASCII(scheme)
	if scheme != "http" && scheme != "https" {
		return "", "", "", false
	}
	end := strings.IndexAny(after, "/?")
	if end < 0 {
		end = len(after)
	}
	return scheme, after[:end], after[end:], end > 0
}

// hostStyle returns the account label and the service of a host-style name. An
// IPv6 literal is none: no zone ends in a bracket.
func hostStyle(host string, zones []geo.Zone) (label string, s geo.Service, ok bool) {
	label, s, zone := cutHost(host)
	return label, s, s != 0 && slices.Contains(zones, zone)
}

// cutHost cuts a name, perhaps with a port, into the labels of an account, of a service and of a zone. The service is
// zero for a name of another form.
func cutHost(host string) (label string, s geo.Service, zone geo.Zone) {
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 {
		host = host[:colon]
	}
	label, rest, _ := strings.Cut(lowerASCII(strings.TrimSuffix(host, ".")), ".")
	service, under, _ := strings.Cut(rest, ".")
	if label == "" {
		return "", 0, ""
	}
	switch service {
	case "blob":
		s = geo.Blob
	case "queue":
		s = geo.Queue
	case "table":
		s = geo.Table
	}
	return label, s, geo.Zone(under)
}

// usableHost reports whether host is a name or an IP literal, perhaps with a
// port. It is strict because Base, which goes into bodies, is made of it.
func usableHost(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '.', c == '_', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return true
}

// usablePath refuses the bytes no request line may hold. Bytes above 0x7f are
// data: some clients send names unescaped.
func usablePath(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// lowerASCII returns s with A to Z in lower case; s itself when it has none. Other
// letters stay: U+212A, say, must not become a k.
func lowerASCII(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
