package auth

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// Use is what a signature is used for.
type Use struct {
	Request *protocol.Request
	// Operation is the one that the request asks for.
	Operation *operation.Operation
	// Policies are those of SAS.Container.
	Policies []catalog.Policy
}

// Container is the container whose stored access policies the signature depends on; empty if it depends on none.
func (s *SAS) Container() string {
	switch {
	case s.text[fieldSI] == "":
		return ""
	case s.service == geo.Table:
		return s.text[fieldTN]
	}
	return s.on.Container
}

// Permit returns what the signature permits, in the order of protocol/auth.md 23: by its policy and its time, from where
// the request comes and how, and for its operation. Errors: 403 AuthenticationFailed for the first two, and the 403 that
// names the reason for the others. Service signatures of blobs and queues before 2015-04-05 answer 404 ResourceNotFound
// where a permission is missing.
func (s *SAS) Permit(u Use) (*protocol.Access, error) {
	a, err := s.access(u.Policies, geo.TimestampOf(u.Request.At))
	if err != nil {
		return nil, err
	}
	r := u.Request
	switch {
	case s.text[fieldSPR] == "https" && r.Scheme != "https":
		return nil, storageerr.ProtocolMismatch
	case !s.from(r.ClientAddr.Addr()):
		return nil, storageerr.SourceIPMismatch.Saying(storageerr.SourceIPMismatch.Message + " " + r.ClientAddr.Addr().String() + ".")
	case s.ofAccount && !strings.Contains(s.text[fieldSS], serviceLetter(s.service)):
		return nil, storageerr.ServiceMismatch
	}
	if err := u.Operation.Permitted(a, r.HTTP.Header, r.Query); err != nil {
		return nil, err
	}
	if s.text[fieldSES] != "" && s.service == geo.Blob && u.Operation.Effect == operation.Writes {
		return nil, storageerr.NotImplemented // What is written would not be in the encryption scope.
	}
	return a, nil
}

func serviceLetter(s geo.Service) string {
	switch s {
	case geo.Blob:
		return "b"
	case geo.Queue:
		return "q"
	}
	return "t"
}

// from reports whether the client's address is one of sip's.
func (s *SAS) from(client netip.Addr) bool {
	client = client.Unmap()
	return !s.first.IsValid() || client.Is4() && client.Compare(s.first) >= 0 && client.Compare(s.last) <= 0
}

// terms are what a signature and its policy say together.
type terms struct {
	letters string
	// start is zero without one.
	start, expiry geo.Timestamp
}

// terms puts the signature's own together with those of its policy. What both say is refused, and so is what neither
// does.
func (s *SAS) terms(policies []catalog.Policy) (terms, error) {
	t := terms{s.text[fieldSP], s.start, s.expiry}
	id := s.text[fieldSI]
	if id == "" {
		return t, nil
	}
	i := slices.IndexFunc(policies, func(p catalog.Policy) bool { return p.ID == id })
	if i < 0 {
		return t, failed("The stored access policy that si names does not exist.")
	}
	p := policies[i]
	var both bool
	for _, f := range [...]struct {
		field  field
		policy string
		needed bool
	}{{fieldSE, p.Expiry, true}, {fieldSP, p.Permission, true}, {fieldST, p.Start, false}} {
		if s.text[f.field] == "" && f.policy == "" && f.needed {
			return t, missing(f.field)
		}
		both = both || s.text[f.field] != "" && f.policy != ""
	}
	if both {
		return t, failed("A field is given by the signature and by its stored access policy.")
	}
	t.letters += p.Permission
	var err1, err2 error
	if p.Start != "" {
		t.start, err1 = parseTime(p.Start)
	}
	if p.Expiry != "" {
		t.expiry, err2 = parseTime(p.Expiry)
	}
	return t, errors.Join(err1, err2)
}

// access is what the signature permits at a time.
func (s *SAS) access(policies []catalog.Policy, now geo.Timestamp) (*protocol.Access, error) {
	t, err := s.terms(policies)
	if err != nil {
		return nil, err
	}
	from := t.start
	if from == 0 {
		from = now
	}
	if s.version == version20090717 && s.text[fieldSI] == "" && t.expiry.Time().Sub(from.Time()) > expiresWithin {
		return nil, errMalformed
	}
	if now < t.start || now >= t.expiry {
		return nil, failed("Signature not valid in the specified time frame: Start [" + printTime(t.start) + "] - Expiry [" +
			printTime(t.expiry) + "] - Current [" + printTime(now) + "]")
	}
	a := &protocol.Access{
		OfAccount: s.ofAccount, Letters: t.letters, Keys: s.keys, Shows: s.shows(),
		Hidden: !s.ofAccount && s.service != geo.Table && s.version < protocol.Version20150405,
	}
	switch { // Of the other kind the field is not signed.
	case s.ofAccount:
		a.Types = s.text[fieldSRT]
	case s.service == geo.Table:
		a.Table = s.text[fieldTN]
	}
	return a, nil
}

// shows is what the signature of a blob shows in place of the blob's headers. No other one signs them.
func (s *SAS) shows() protocol.Shows {
	if s.ofAccount || s.service != geo.Blob {
		return protocol.Shows{}
	}
	return protocol.Shows{
		CacheControl: s.text[fieldRSCC], ContentDisposition: s.text[fieldRSCD], ContentEncoding: s.text[fieldRSCE],
		ContentLanguage: s.text[fieldRSCL], ContentType: s.text[fieldRSCT],
	}
}

// expiresWithin is how long a signature may last that has neither a version nor a policy (protocol/auth.md 17).
const expiresWithin = time.Hour

// printTime is a time as the detail of an error has it; empty for none.
func printTime(ts geo.Timestamp) string {
	if ts == 0 {
		return ""
	}
	return wire.FormatHTTPTime(ts.Time())
}
