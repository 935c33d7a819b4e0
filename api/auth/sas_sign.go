package auth

import (
	"crypto/sha256"
	"net/url"
	"strings"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/stamp/keys"
)

// VerifySAS returns the shared access signature that a request carries, if it was made with one of the account's keys.
// What it permits, SAS.Permit says. Every error is 403 AuthenticationFailed with a detail.
func (v *Verifier) VerifySAS(t protocol.Target, on Resource, q protocol.Query, key Keys) (*SAS, error) {
	sas, err := ParseSAS(t, on, q)
	if err != nil {
		return nil, err
	}
	s, _ := v.spare.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	defer v.keep(s)
	s.text = sas.appendText(s.text[:0], t.SignedAs())
	s.signature = append(s.signature[:0], sas.text[fieldSig]...)
	var mac [sha256.Size]byte
	if !strings.Contains(sas.resource(t.SignedAs()), "\n") && decodeSignature(&mac, s.signature) && s.signed(&mac, key) && sas.fits() {
		return sas, nil
	}
	return nil, failed("Signature did not match. String to sign used was " + string(s.text))
}

// fits reports whether the request addresses what the signature is for, as far as its string does not decide that.
func (s *SAS) fits() bool {
	switch {
	case s.ofAccount:
		return true
	case s.ofBlob():
		return s.on.Blob != ""
	case s.service == geo.Blob:
		return s.on.Container != ""
	case s.service == geo.Table: // The operations that have no table in their path are not the signature's to permit.
		return s.on.Container == "" || keys.TableContainer(s.on.Container) == keys.TableContainer(s.text[fieldTN])
	}
	return true
}

// ofBlob reports whether the signature is for a blob or a snapshot of one.
func (s *SAS) ofBlob() bool { return s.service == geo.Blob && strings.HasPrefix(s.text[fieldSR], "b") }

// resource is what the string of a service signature names, decoded.
func (s *SAS) resource(account geo.Account) string {
	name := s.on.Container
	switch {
	case s.ofAccount:
		return ""
	case s.service == geo.Table:
		name = keys.TableContainer(s.text[fieldTN])
	case s.ofBlob():
		name += "/" + s.on.Blob
	}
	path := "/" + string(account) + "/" + name
	if s.version >= protocol.Version20150221 {
		path = "/" + s.service.String() + path
	}
	return path
}

// appendText appends the string to sign (protocol/auth.md 15, 17).
func (s *SAS) appendText(b []byte, account geo.Account) []byte {
	if s.ofAccount {
		b = appendField(b, string(account))
		list := [...]field{fieldSP, fieldSS, fieldSRT, fieldST, fieldSE, fieldSIP, fieldSPR, fieldSV, fieldSES}
		n := len(list)
		if s.version < fieldSES.since() {
			n--
		}
		for _, f := range list[:n] {
			b = appendField(b, s.text[f])
		}
		return b
	}
	for _, f := range [...]field{fieldSP, fieldST, fieldSE} {
		b = appendField(b, s.text[f])
	}
	b = appendField(b, s.resource(account))
	b = append(b, s.text[fieldSI]...)
	for _, f := range s.tail() {
		b = append(append(b, '\n'), s.text[f]...)
	}
	return b
}

// tail are the fields behind si, each after a line feed.
func (s *SAS) tail() []field {
	var list []field
	if s.version >= protocol.Version20150405 {
		list = append(list, fieldSIP, fieldSPR)
	}
	if s.version > version20090717 {
		list = append(list, fieldSV)
	}
	switch s.service {
	case geo.Table:
		return append(list, fieldSPK, fieldSRK, fieldEPK, fieldERK)
	case geo.Queue:
		return list
	}
	if s.version >= version20181109 {
		list = append(list, fieldSR, fieldSnapshot)
	}
	if s.version >= fieldSES.since() {
		list = append(list, fieldSES)
	}
	if s.version >= fieldRSCC.since() {
		list = append(list, fieldRSCC, fieldRSCD, fieldRSCE, fieldRSCL, fieldRSCT)
	}
	return list
}

// SignSAS returns the query of a shared access signature, for tests and load generators: the parameters and sig. The
// target's service and account count, and which kind of signature it is follows from the parameters.
func SignSAS(t protocol.Target, on Resource, params url.Values, key []byte) (string, error) {
	q, err := protocol.ParseQuery(params.Encode())
	if err != nil {
		return "", err
	}
	s, err := ParseSAS(t, on, q)
	if err != nil {
		return "", err
	}
	var mac [sha256.Size]byte
	new(macState).sum(&mac, key, s.appendText(nil, t.SignedAs()))
	return params.Encode() + "&sig=" + url.QueryEscape(encodeSignature(mac)), nil
}
