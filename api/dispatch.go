package api

import (
	"net/http"

	"antipode/api/accounts"
	"antipode/api/auth"
	"antipode/api/blobs"
	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/queues"
	"antipode/api/tables"
	"antipode/geo"
)

// parse reads what the request asks for from its target and headers. Its errors are of a request of which the version
// is not known.
func (x *exchange) parse() error {
	trimHeader(x.r.Header)
	target, err := protocol.ParseTarget(x.service, x.req.Scheme, x.r.Host, x.r.RequestURI, x.o.Zones...)
	if err != nil {
		return err
	}
	x.req.Target = target
	x.service = target.Service
	if x.req.Query, err = protocol.ParseQuery(target.RawQuery); err != nil {
		return err
	}
	if err := x.addressed(); err != nil {
		return err
	}
	if x.req.Version, err = auth.Version(target.Service, x.r.Header, x.req.Query); err != nil {
		return err
	}
	x.asked = x.lookup()
	return nil
}

// lookup finds what the request asks for.
func (x *exchange) lookup() operation.Match {
	if m, is := operation.IsPreflight(x.r.Method); is {
		return m
	}
	if m, own := accounts.Lookup(x.req); own {
		return m
	}
	switch x.service {
	case geo.Table:
		return tables.Lookup(x.req)
	case geo.Blob:
		return blobs.Lookup(x.req)
	}
	return queues.Lookup(x.req)
}

// changes reports whether the request is to be refused on `-secondary`. What is no
// operation is refused by its service either way: then the verb only chooses the error.
func (x *exchange) changes() bool {
	if x.asked.Name == operation.Unknown {
		return x.r.Method != http.MethodGet && x.r.Method != http.MethodHead
	}
	return x.asked.Secondary == operation.No
}

// dispatch lets the service answer the request.
func (x *exchange) dispatch() error {
	x.op = x.asked.Name
	if x.asked.Body.Kind == operation.None && x.asked.Name != operation.Unknown {
		if err := protocol.TakeBody(x.r, operation.UselessBodyMax); err != nil {
			return err
		}
	}
	if x.asked.Resource == operation.Service {
		return x.o.Accounts.Serve(x.w, x.req, x.asked)
	}
	switch x.service {
	case geo.Table:
		return x.o.Tables.Serve(x.w, x.req, x.asked)
	case geo.Blob:
		return x.o.Blobs.Serve(x.w, x.req, x.asked)
	}
	return x.o.Queues.Serve(x.w, x.req, x.asked)
}
