package accounts

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// Stats computes the replication state of a service of an account at the replica
// that answers.
type Stats func(ctx context.Context, a *catalog.Account, s geo.Service) (stats.Replication, error)

// Stamp is the stamp of this location.
type Stamp interface {
	ranges.Reader
	ranges.Routed
}

// Handler answers the account-level calls of every service. Its methods may be called concurrently.
type Handler struct {
	Stats Stats
	// Stamp and Writer read and write this location's catalog.
	Stamp  Stamp
	Writer services.Writer
	// OmitEmptyLastSyncTime leaves the element out where there is no value, for a
	// client that cannot parse an empty one (protocol/service.md 3).
	OmitEmptyLastSyncTime bool

	begin    sync.Once
	inFlight *protocol.InFlight
}

// Lookup finds the call of the service that a request asks for; own is false for any other
// request. Those are calls on the root of the account with restype=service, or with a comp
// that goes with it alone.
func Lookup(r *protocol.Request) (m operation.Match, own bool) {
	if r.Resource != "" && r.Resource != "/" {
		return m, false
	}
	comp, restype := strings.ToLower(r.Query.Get("comp")), strings.ToLower(r.Query.Get("restype"))
	// The properties of restype=account are Get Account Information.
	if restype != "service" && (comp != "stats" && comp != "properties" || restype == "account") {
		return m, false
	}
	return operation.Find(r, operation.Service, r.HTTP.Method), true
}

// Serve answers a call of the service, which Lookup found.
func (h *Handler) Serve(w http.ResponseWriter, r *protocol.Request, m operation.Match) error {
	if m.Fault == operation.BadRestype {
		restype := strings.ToLower(r.Query.Get("restype"))
		return wire.BadParameter("restype", restype, "The call is one of the service: restype=service.")
	}
	if err := protocol.CheckVerb(r.HTTP.Method); err != nil {
		return err
	}
	if err := protocol.CheckRepeated(r.HTTP.Header); err != nil {
		return err
	}
	switch {
	case m.Fault == operation.BadComp:
		return wire.BadParameter("comp", strings.ToLower(r.Query.Get("comp")), "The value is not one of the service's.")
	case m.Fault == operation.BadVerb:
		return notAllowed(w, r.Service, m.Allow)
	case !m.Built:
		return storageerr.NotImplemented
	case m.Comp == "stats":
		return h.stats(w, r, m)
	case m.Effect == operation.Reads:
		return h.getProperties(w, r)
	}
	return h.setProperties(w, r, m)
}

// notAllowed is the answer to a verb that does not fit, in the words of the service.
func notAllowed(w http.ResponseWriter, s geo.Service, allowed operation.Verbs) error {
	w.Header()["Allow"] = []string{allowed.String()}
	if s == geo.Table {
		return storageerr.TableMethodNotAllowed
	}
	return storageerr.UnsupportedHTTPVerb
}

// stats answers Get Service Stats, at the secondary endpoint only (protocol/service.md 3).
func (h *Handler) stats(w http.ResponseWriter, r *protocol.Request, m operation.Match) error {
	if m.Secondary == operation.Only && !r.Secondary || r.Version < m.Since {
		return wire.BadParameter("comp", "stats", "Statistics are served at the secondary endpoint, from version 2013-08-15 on.")
	}
	rep, err := h.Stats(r.HTTP.Context(), r.Account, r.Service)
	if err != nil {
		return err
	}
	body := h.body(rep)
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(body)) // The client is gone when this fails.
	return nil
}

// body is the document of protocol/service.md 3. The time is cut to whole seconds, never
// rounded up: a later value would promise too much.
func (h *Handler) body(rep stats.Replication) string {
	last := ""
	switch {
	case rep.Known():
		last = "<LastSyncTime>" + wire.FormatHTTPTime(rep.LastSync.Time()) + "</LastSyncTime>"
	case !h.OmitEmptyLastSyncTime:
		last = "<LastSyncTime></LastSyncTime>"
	}
	return `<?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication><Status>` + string(rep.Status) +
		"</Status>" + last + "</GeoReplication></StorageServiceStats>"
}
