package operation

import (
	"net/http"
	"strings"

	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// Permitted refuses the operation where the shared access signature of its request does not permit it, in the order of
// protocol/auth.md 23: the resource type, the letters, and what no signature permits. a is nil without a signature. The
// header and the query are those of the request, or of its part of a batch. What is no operation, or not built, is left to
// its service, which refuses it: no permission would help. So is a batch of tables, whose parts are asked for one by one.
func (o *Operation) Permitted(a *protocol.Access, h http.Header, q protocol.Query) error {
	if a == nil || !o.Built || o.On == Batch || o.SAS.Any {
		return nil
	}
	letters := o.SAS.Service
	if a.OfAccount {
		letters = o.SAS.Account
	}
	switch {
	case letters == "":
		return storageerr.NotAuthorized
	case a.OfAccount && !strings.ContainsAny(a.Types, o.SAS.Type):
		return storageerr.ResourceTypeMismatch
	}
	if o.SAS.Current != "" && !q.Has("versionid") && !q.Has("deletetype") {
		letters = o.SAS.Current
	}
	if o.asksTags(h, q) && !a.Tags() {
		letters = "" // The other letters do not suffice.
	}
	upserts := o.SAS.Upsert != "" && !protocol.HasCondition(h, "If-Match")
	if !strings.ContainsAny(a.Letters, letters) || upserts && !strings.Contains(a.Letters, o.SAS.Upsert) {
		if a.Hidden {
			return storageerr.ResourceNotFound
		}
		return storageerr.PermissionMismatch
	}
	return nil
}

// asksTags reports whether a request reads or writes tags of blobs besides: it has to be permitted (protocol/blob.md 9.4, 7.1,
// 16.2).
func (o *Operation) asksTags(h http.Header, q protocol.Query) bool {
	switch {
	case o.Takes&Tags != 0 && h.Get("X-Ms-Tags") != "", o.Takes&IfTags != 0 && h.Get("X-Ms-If-Tags") != "":
		return true
	case o.Takes&ListsTags == 0:
		return false
	}
	for item := range q.Included() {
		if item == "tags" {
			return true
		}
	}
	return false
}
