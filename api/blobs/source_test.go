package blobs

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
)

// fakeSources finds blobs of the rig, which is localhost too, and reads all others with its client.
type fakeSources struct {
	r *rig
	// access is what the signature of a URL permits.
	access *protocol.Access
}

func (f fakeSources) Source(_ context.Context, _ *protocol.Request, uri string) (*protocol.Source, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return nil, wire.BadHeader("x-ms-copy-source", uri)
	}
	shown := *u
	shown.RawQuery = strings.ReplaceAll(shown.RawQuery, "sig=secret", "sig=REDACTED")
	if "http://"+u.Host != f.r.url && u.Host != "localhost" {
		return &protocol.Source{Shown: shown.String(), Do: func(r *http.Request) (*http.Response, error) {
			r.URL, r.Host = u, u.Host
			return f.r.client.Do(r)
		}}, nil
	}
	if u.Query().Get("sig") == "bad" {
		return nil, storageerr.CopySourceRefused(403, storageerr.AuthenticationFailed.Code, storageerr.AuthenticationFailed.Message)
	}
	q := &protocol.Request{Account: &f.r.account, Version: testVersion, Access: f.access}
	if q.Target, err = protocol.ParseTarget(geo.Blob, "http", u.Host, u.RequestURI()); err != nil {
		return nil, err
	}
	if q.Query, err = protocol.ParseQuery(q.RawQuery); err != nil {
		return nil, err
	}
	return &protocol.Source{Read: q, Shown: shown.String()}, nil
}

// copy asks for the copy of a blob of the rig.
func (r *rig) copy(path, from string, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPut, path, nil, append([]string{"x-ms-copy-source", r.url + "/acct" + from}, header...)...)
}
