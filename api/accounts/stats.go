package accounts

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stats"
)

// Stats computes the replication state of a service of an account at the replica
// that answers.
type Stats func(ctx context.Context, a *catalog.Account, s geo.Service) (stats.Replication, error)

// Handler answers the account-level calls of every service.
type Handler struct {
	Stats Stats
	// OmitEmptyLastSyncTime leaves the element out where there is no value, for a
	// client that cannot parse an empty one (protocol/service.md 3).
	OmitEmptyLastSyncTime bool
}

// RangeOf is the range whose leader answers a call of the service, zero where any node
// does; own is false for any other request. The statistics are the catalog leader's: the
// stream from the other location is received there.
func RangeOf(r *protocol.Request) (id geo.RangeID, own bool) {
	comp, _, own := serviceCall(r)
	if own && comp == "stats" {
		return geo.FirstRange(geo.Catalog), true
	}
	return 0, own
}

// serviceCall reports whether a request on the root of the account is one of the service:
// by restype=service, or by a comp that goes with it alone.
func serviceCall(r *protocol.Request) (comp, restype string, own bool) {
	if r.Resource != "" && r.Resource != "/" {
		return "", "", false
	}
	comp, restype = strings.ToLower(r.Query.Get("comp")), strings.ToLower(r.Query.Get("restype"))
	// The properties of restype=account are Get Account Information.
	return comp, restype, restype == "service" || (comp == "stats" || comp == "properties") && restype != "account"
}

// Classify names the operation that Serve would run, or operation.Unknown where it would
// refuse the request; own is false for any request that is not one of the service.
func Classify(r *protocol.Request) (name string, own bool) {
	comp, restype, own := serviceCall(r)
	method, service := r.HTTP.Method, serviceName(r.Service)
	switch {
	case !own:
		return "", false
	case restype != "service":
	case comp == "stats" && method == http.MethodGet:
		return "Get" + service + "ServiceStats", true
	case comp == "properties" && method == http.MethodGet:
		return "Get" + service + "ServiceProperties", true
	case comp == "properties" && method == http.MethodPut:
		return "Set" + service + "ServiceProperties", true
	case comp == "userdelegationkey" && method == http.MethodPost && r.Service != geo.Table:
		return "GetUserDelegationKey", true
	}
	return operation.Unknown, true
}

// Serve answers a call of the service; handled is false for any other request.
func (h *Handler) Serve(w http.ResponseWriter, r *protocol.Request) (name string, handled bool, err error) {
	comp, restype, own := serviceCall(r)
	switch {
	case !own:
		return "", false, nil
	case restype != "service":
		return "", true, wire.BadParameter("restype", restype, "The call is one of the service: restype=service.")
	}
	if err := protocol.CheckVerb(r.HTTP.Method); err != nil {
		return "", true, err
	}
	service := serviceName(r.Service)
	switch {
	case comp == "stats":
		return "Get" + service + "ServiceStats", true, h.stats(w, r)
	case comp == "properties" && r.HTTP.Method == http.MethodGet:
		return "Get" + service + "ServiceProperties", true, storageerr.NotImplemented
	case comp == "properties" && r.HTTP.Method == http.MethodPut:
		return "Set" + service + "ServiceProperties", true, storageerr.NotImplemented
	case comp == "properties":
		return "Get" + service + "ServiceProperties", true, notAllowed(w, r.Service, "GET, PUT")
	case comp == "userdelegationkey" && r.Service != geo.Table:
		return "GetUserDelegationKey", true, storageerr.NotImplemented
	}
	return "", true, wire.BadParameter("comp", comp, "The value is not one of the service's.")
}

// notAllowed is the answer to a verb that does not fit, in the words of the service.
func notAllowed(w http.ResponseWriter, s geo.Service, allowed string) error {
	w.Header()["Allow"] = []string{allowed}
	if s == geo.Table {
		return storageerr.TableMethodNotAllowed
	}
	return storageerr.UnsupportedHTTPVerb
}

func serviceName(s geo.Service) string {
	name := s.String()
	return strings.ToUpper(name[:1]) + name[1:]
}

// stats answers Get Service Stats, at the secondary endpoint only (protocol/service.md 3).
func (h *Handler) stats(w http.ResponseWriter, r *protocol.Request) error {
	if r.HTTP.Method != http.MethodGet {
		return notAllowed(w, r.Service, "GET")
	}
	if !r.Secondary || r.Version < protocol.Version20130815 {
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
