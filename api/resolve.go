package api

import (
	"context"
	"errors"

	"antipode/api/auth"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// resolve reads the addressed account, the CORS rules of its service and the container that the request needs, in one read of
// the catalog: on a node that does not lead the catalog each read waits for its leader (R5).
// Which error an unknown account gets depends on the service (protocol/table.md 14.1,
// protocol/auth.md 23). The outcome for the container waits in x.req until the handler asks for
// it, since what is wrong with the request itself is answered before a missing container.
//
// The container may be deleted, and made again, before the handler uses it. The range of the
// service then refuses a write to the generation (R8). A read is answered with the state before
// the deletion, which happened after the request had arrived.
func (x *exchange) resolve(ctx context.Context) (err error) {
	x.req.Account, x.req.Container, x.rules, err = x.o.Directory.Resolve(ctx, x.req.Target.Account, x.service, x.container)
	if errors.Is(err, storageerr.AccountNotFound) {
		return x.unknown()
	}
	return err
}

// unknown is the error for an account that does not exist. Where a gateway knows of an epoch of it, it does: this location has
// lost it with its disks.
func (x *exchange) unknown() error {
	if routing.Outrun(x.routed(), x.o.Location, geo.Epoch{}) {
		x.op = opForwarded
		return routing.ErrLost
	}
	if x.service == geo.Table {
		return storageerr.AuthenticationFailed.With("AuthenticationErrorDetail", "The account does not exist.")
	}
	return storageerr.AccountNotFound
}

// container names the container to read together with the account; empty for none. It is read
// only where it is used: on the node that serves the request, not on one that forwards it, and
// only for a request with a right signature, so that not even the time of a refusal depends on
// it. If this node becomes the leader only while the request waits for one, the handler reads
// the container. A signature with a stored access policy needs its container on every node of
// the location, since each authorizes for itself.
func (x *exchange) container(a *catalog.Account) string {
	if x.location(a) != x.o.Location {
		return ""
	}
	name := x.asked.Resolves()
	if !x.leaders.Here(x.leads(), x.service) {
		name = ""
	}
	if name == "" && !auth.HasSAS(x.r.Header, x.req.Query) || x.signed(a) != nil {
		return ""
	}
	if x.sas != nil && x.sas.Container() != "" {
		name = x.sas.Container()
	}
	return name
}

// leads returns the range whose leader serves the request.
func (x *exchange) leads() geo.RangeID {
	return x.asked.Range(x.o.Route(), x.service, x.req.Target.Account)
}

// location returns the location that serves the request for an account. Without a secondary, its
// primary refuses what is asked of one.
func (x *exchange) location(a *catalog.Account) geo.Location {
	if x.req.Secondary && a.Secondary != "" {
		return a.Secondary
	}
	return a.Primary
}

// signed compares the signature with the keys of the account, once.
func (x *exchange) signed(a *catalog.Account) error {
	if x.signer == a {
		return x.refusal
	}
	x.signer = a
	x.sas, x.refusal = x.verifier.Check(x.req, x.asked, a)
	return x.refusal
}

// authorize refuses a request whose signature is wrong, or is a shared access signature that does not permit it.
func (x *exchange) authorize(a *catalog.Account) (err error) {
	if err := x.signed(a); err != nil || x.sas == nil {
		return err
	}
	x.req.Access, err = x.sas.PermitFound(x.req, x.asked.Operation)
	return err
}
