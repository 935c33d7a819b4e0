package client

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"antipode/geo"
)

// ErrEndpoint means that a request does not go to an endpoint of the account that its policy is for.
var ErrEndpoint = errors.New("client: the request is not to an endpoint of the account")

// endpoints are where requests go, by Endpoint: the scheme, the host, and in path style the path /ACCOUNT. The account is the
// first label of the host otherwise.
type endpoints [2]url.URL

// newEndpoints parses the endpoint of the primary and of the secondary, which follows from the former where it is empty.
func newEndpoints(primary, secondary string) (endpoints, error) {
	p, err := parseEndpoint(primary)
	if err != nil {
		return endpoints{}, err
	}
	if secondary != "" {
		s, err := parseEndpoint(secondary)
		if err == nil && *s == *p {
			err = fmt.Errorf("client: %q is both endpoints", primary)
		}
		if err != nil {
			return endpoints{}, err
		}
		return endpoints{*p, *s}, nil
	}
	s := *p
	account := strings.TrimPrefix(p.Path, "/")
	if p.Path != "" {
		s.Path += geo.SecondarySuffix
	} else {
		var zone string
		var dotted bool
		account, zone, dotted = strings.Cut(p.Host, ".")
		if !dotted || net.ParseIP(p.Hostname()) != nil {
			return endpoints{}, fmt.Errorf("client: %q names no account: give one such as http://127.0.0.1:10000/ACCOUNT", primary)
		}
		s.Host = account + geo.SecondarySuffix + "." + zone
	}
	if strings.HasSuffix(account, geo.SecondarySuffix) {
		return endpoints{}, fmt.Errorf("client: %q is a secondary endpoint: give the primary's", primary)
	}
	return endpoints{*p, s}, nil
}

// parseEndpoint parses the URL that clients of an account are made with. Its query, a shared access signature, is that of every
// request and not looked at.
func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("client: %q is no endpoint: give a URL such as https://ACCOUNT.blob.example.net", text)
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	if strings.Count(path, "/") > 1 || strings.Contains(path, "%") {
		return nil, fmt.Errorf("client: %q is below an endpoint: give the account's", text)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}, nil
}

// resource is what a request is about: its path below the endpoint, as url.URL has it.
type resource struct{ path, rawPath string }

// resource returns that of a request to either endpoint.
func (e endpoints) resource(u *url.URL) (resource, error) {
	for _, from := range e {
		path, ok := strings.CutPrefix(u.Path, from.Path)
		if !ok || path != "" && path[0] != '/' || !strings.EqualFold(u.Scheme, from.Scheme) || !strings.EqualFold(u.Host, from.Host) {
			continue
		}
		// Account names have nothing to escape, so the raw path begins with the same text.
		return resource{path, strings.TrimPrefix(u.RawPath, from.Path)}, nil
	}
	return resource{}, fmt.Errorf("%w: %s, not %s", ErrEndpoint, u.Host, e[Primary].Host)
}

// direct makes a request about a resource one to an endpoint.
func (e endpoints) direct(r *http.Request, at resource, to Endpoint) {
	if r.Host == r.URL.Host {
		r.Host = e[to].Host
	}
	r.URL.Scheme, r.URL.Host, r.URL.Path = e[to].Scheme, e[to].Host, e[to].Path+at.path
	if at.rawPath != "" {
		r.URL.RawPath = e[to].Path + at.rawPath
	}
}

// kind is what a request may be sent to.
type kind int

const (
	read kind = iota
	// write goes to the primary: all that changes something, and the messages that a queue gives out, which it hides.
	write
	// statistics are those of the secondary, and only it has them.
	statistics
)

// kindOf returns the kind of a request to a service (protocol/service.md 13).
func kindOf(s geo.Service, r *http.Request, at resource) kind {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return write
	}
	q := r.URL.Query()
	if q.Get("restype") == "service" && q.Get("comp") == "stats" {
		return statistics
	}
	_, last, _ := strings.Cut(strings.TrimPrefix(at.path, "/"), "/")
	if s == geo.Queue && last == "messages" && q.Get("peekonly") != "true" {
		return write
	}
	return read
}
