package auth

import (
	"net/http"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// Check compares the signature of a request, or of a part of a batch, with the keys of its account: Verify or VerifySAS,
// whichever the request calls for. sas is the signature if it is a shared access signature, else nil.
func (v *Verifier) Check(r *protocol.Request, asked operation.Match, a *catalog.Account) (sas *SAS, err error) {
	keys := Keys{Key1: a.Key1, Key2: a.Key2}
	if HasSAS(r.HTTP.Header, r.Query) {
		return v.VerifySAS(r.Target, Resource{Container: asked.Container, Blob: asked.Blob}, r.Query, keys)
	}
	return nil, v.verify(r.HTTP, r.Target, &r.Query, r.Version, keys, r.InBatch)
}

// PermitFound is Permit, with the policies of the container that was looked up for the request.
func (s *SAS) PermitFound(r *protocol.Request, o *operation.Operation) (*protocol.Access, error) {
	use := Use{Request: r, Operation: o}
	if found := r.Container; s.Container() != "" && found != nil {
		switch {
		case found.Container != nil:
			use.Policies = found.Container.Policies
		case !notFound(found.Err):
			return nil, found.Err
		}
	}
	return s.Permit(use)
}

// notFound reports whether a container does not exist: then neither does a policy of it, and nobody without a right to
// it learns more.
func notFound(err error) bool {
	e, ours := storageerr.Of(err)
	return ours && e.Status == http.StatusNotFound
}
