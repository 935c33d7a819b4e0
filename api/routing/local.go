package routing

import (
	"errors"
	"maps"
	"net/http"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/storageerr"
)

// Local lets the front end of a location that runs in this process answer a request, with the same connection: what a hop to
// it would come to, without a second request. It reports false, and nothing happened, if the location does not run here now.
// It panics with http.ErrAbortHandler where the answer breaks off.
type Local func(l geo.Location, s geo.Service, w http.ResponseWriter, r *http.Request) (served bool)

// call lets a location of this process answer the request, as Forwarder.send does at an address. here is false if none does:
// then nothing happened.
func (g *Gateway) call(q Request, l geo.Location, h hop) (here bool, err error) {
	if g.local == nil {
		return false, nil
	}
	a := &localAnswer{to: q, hop: h, header: http.Header{}}
	defer func() {
		if p := recover(); p != nil {
			if broken, ok := p.(error); a.begun || !ok || !errors.Is(broken, http.ErrAbortHandler) {
				panic(p)
			}
			here, err = true, h.lostHere(q)
		}
	}()
	r := q.R.WithContext(q.R.Context())
	r.Header = maps.Clone(q.R.Header)
	h.introduce(r.Header, g.forward.from)
	g.forward.introduce(r.Header, destination{}) // With the process's secret, which proves what the gateway claims.
	if !g.local(l, q.Service, a, r) {
		return false, nil
	}
	a.WriteHeader(http.StatusOK) // As net/http does.
	if a.refused {
		return true, errRefused
	}
	return true, a.left
}

// lostHere is hop.failed for an answer that broke off before it began.
func (h hop) lostHere(q Request) error {
	if q.Reads && *h.lost == 0 && protocol.Received(q.R) == 0 {
		*h.lost++
		return errUnreachable
	}
	return storageerr.OperationTimedOut // The request may have had an effect.
}

// localAnswer is the answer of a location of this process on its way to the client of the gateway.
type localAnswer struct {
	to  Request
	hop hop
	// header is the location's, until the answer begins.
	header http.Header
	// begun: the answer is the client's. refused: it leaves the request to another location, and is dropped.
	begun, refused bool
	// left is why nobody takes the answer, if the client was gone before it began.
	left error
}

// Header implements http.ResponseWriter.
func (a *localAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. Only the first call has an effect.
func (a *localAnswer) WriteHeader(status int) {
	if a.begun || a.refused {
		return
	}
	if a.hop.answered != nil {
		a.hop.answered(a.header)
	}
	if a.header.Get(a.hop.refusal) != "" && protocol.Received(a.to.R) == 0 {
		a.refused = true
		return
	}
	a.begun, a.left = true, a.to.R.Context().Err()
	out := a.to.W.Header()
	clear(out)
	maps.Copy(out, a.header)
	for _, name := range [...]string{servedByHeader, notHereHeader, passedOnHeader, leavingHeader} {
		delete(out, name)
	}
	a.to.W.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *localAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.refused {
		return len(p), nil
	}
	return a.to.W.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *localAnswer) Unwrap() http.ResponseWriter { return a.to.W }
