package auth

import (
	"net/http"
	"net/netip"
	"strings"
	"unicode/utf8"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/tables"
)

// Versions of shared access signatures beyond those of package protocol.
const (
	// version20090717 is that of a signature that names none.
	version20090717 protocol.Version = "2009-07-17"
	version20181109 protocol.Version = "2018-11-09"
)

// field is a parameter of a shared access signature.
type field uint8

const (
	fieldSV field = iota
	fieldSS
	fieldSRT
	fieldSP
	fieldST
	fieldSE
	fieldSI
	fieldSIP
	fieldSPR
	fieldSES
	fieldSR
	fieldTN
	fieldSPK
	fieldSRK
	fieldEPK
	fieldERK
	fieldRSCC
	fieldRSCD
	fieldRSCE
	fieldRSCL
	fieldRSCT
	fieldSig
	// fieldSnapshot is the parameter snapshot of a signature for one, whose resource is bs; else it is empty, and signed so.
	fieldSnapshot
	fields
)

//nolint:gochecknoglobals // A table, never written.
var fieldNames = [fieldSnapshot]string{
	"sv", "ss", "srt", "sp", "st", "se", "si", "sip", "spr", "ses", "sr", "tn", "spk", "srk", "epk", "erk",
	"rscc", "rscd", "rsce", "rscl", "rsct", "sig",
}

// since is the first version that signs a field. Before that it is a parameter like any other, without an effect: it
// must not take one from who holds the token.
func (f field) since() protocol.Version {
	switch f {
	case fieldSIP, fieldSPR:
		return protocol.Version20150405
	case fieldSES:
		return protocol.Version20201206
	case fieldRSCC, fieldRSCD, fieldRSCE, fieldRSCL, fieldRSCT:
		return protocol.Version20130815
	}
	return ""
}

// Letters of permissions (protocol/auth.md 15, 20).
const (
	accountLetters = "rwdxylacuptfi"
	blobLetters    = "racwdxyltfmeopi"
	queueLetters   = "raup"
	tableLetters   = "raud"
)

// SAS is a shared access signature as a request carries it, well formed. Whether it is right, Verifier.VerifySAS says,
// and what it permits now, Permit.
type SAS struct {
	service geo.Service
	// version decides the string to sign.
	version protocol.Version
	// ofAccount means an account signature; else it is one of the service.
	ofAccount bool
	// on is what the request addresses.
	on   Resource
	text [fields]string
	// start is zero without one, and expiry where a policy has it.
	start, expiry geo.Timestamp
	// first and last are those of sip.
	first, last netip.Addr
	keys        *tables.KeyRange
}

// Resource is what the path of a request names, decoded.
type Resource struct {
	// Container is a blob container, a queue or a table; empty for the account.
	Container string
	// Blob is empty for a container.
	Blob string
}

// HasSAS reports whether a request is authorized by a shared access signature: beside an Authorization header its
// parameters are parameters like any other.
func HasSAS(h http.Header, q protocol.Query) bool {
	return len(h[headerAuthorization]) == 0 && q.Has("sig")
}

// Version returns the version that serves a request (protocol/auth.md 14).
func Version(s geo.Service, h http.Header, q protocol.Query) (protocol.Version, error) {
	header := h.Get(protocol.HeaderVersion)
	if !HasSAS(h, q) {
		return protocol.ServiceVersion(s, header, h.Get(headerAuthorization) != "")
	}
	sv, sent := q.Lookup("sv")
	if !sent {
		return protocol.ServiceVersion(s, header, false)
	}
	version, err := signedVersion(sv)
	if err != nil || version < protocol.Version20140214 {
		return version, err
	}
	if text := q.Get("api-version"); text != "" {
		if version, err = protocol.Effective(text); err != nil {
			err = wire.BadParameter("api-version", text, "The value is no version of the service.")
		}
		return version, err
	}
	if header != "" {
		return protocol.Effective(header)
	}
	return version, nil
}

// signedVersion is the version that sv names.
func signedVersion(sv string) (protocol.Version, error) {
	version, err := protocol.Effective(sv)
	if err != nil || version < protocol.Version20120212 {
		return "", errMalformed
	}
	return version, nil
}

// errMalformed refuses what no client library makes.
var errMalformed = failed("Signature fields not well formed.")

func missing(f field) error { return failed(fieldNames[f] + " is mandatory. Cannot be empty") }

// ParseSAS reads the shared access signature of a request (protocol/auth.md 13 to 16). Every error is 403
// AuthenticationFailed.
func ParseSAS(t protocol.Target, on Resource, q protocol.Query) (*SAS, error) {
	if q.Has("skoid") {
		return nil, failed("User delegation signatures are not supported.")
	}
	s := &SAS{service: t.Service, on: on, version: version20090717}
	s.ofAccount = q.Has("ss") && q.Has("srt")
	if sv, sent := q.Lookup("sv"); sent {
		version, err := signedVersion(sv)
		if err != nil {
			return nil, err
		}
		s.version = version
	}
	if err := s.read(q); err != nil {
		return nil, err
	}
	check := s.checkService
	if s.ofAccount {
		check = s.checkAccount
	}
	if err := check(); err != nil {
		return nil, err
	}
	return s, s.parse()
}

// read takes the fields that the version signs. A line feed in one would let it pass for two, and the parts of a key
// range are UTF-8.
func (s *SAS) read(q protocol.Query) error {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	for _, p := range q {
		for f := range fieldSnapshot {
			switch {
			case p.Name != fieldNames[f] || s.version < f.since():
			case strings.ContainsFunc(p.Value, control) || !utf8.ValidString(p.Value):
				return errMalformed
			default:
				s.text[f] = p.Value
			}
		}
	}
	if s.service == geo.Blob && s.text[fieldSR] == "bs" {
		if s.text[fieldSnapshot] = q.Get("snapshot"); strings.ContainsFunc(s.text[fieldSnapshot], control) {
			return errMalformed
		}
	}
	// A plus sign that was not escaped is decoded as a space.
	s.text[fieldSig] = strings.ReplaceAll(s.text[fieldSig], " ", "+")
	return nil
}

// checkAccount checks what an account signature must have.
func (s *SAS) checkAccount() error {
	if s.version < protocol.Version20150405 {
		return errMalformed
	}
	for _, f := range [...]field{fieldSS, fieldSRT, fieldSP, fieldSE} {
		if s.text[f] == "" {
			return missing(f)
		}
	}
	if !isOf(s.text[fieldSS], "bqtf") || !isOf(s.text[fieldSRT], "sco") || !isOf(s.text[fieldSP], accountLetters) {
		return errMalformed
	}
	s.text[fieldSI] = "" // It is not signed, and account signatures have no policies.
	return nil
}

// checkService checks what a signature of a service must have.
func (s *SAS) checkService() error {
	letters := blobLetters
	switch s.service {
	case geo.Queue:
		letters = queueLetters
	case geo.Table:
		letters = tableLetters
		if s.text[fieldTN] == "" {
			return missing(fieldTN)
		}
	default:
		switch s.text[fieldSR] {
		case "b", "c":
		case "":
			return missing(fieldSR)
		case "bs":
			if s.version < version20181109 || s.text[fieldSnapshot] == "" {
				return errMalformed
			}
		default:
			return failed("Signatures of versions and directories are not supported.")
		}
	}
	if s.version == version20090717 && s.service != geo.Blob {
		return missing(fieldSV)
	}
	if !isOf(s.text[fieldSP], letters) {
		return errMalformed
	}
	if s.text[fieldSI] != "" {
		return nil // What is missing is the policy's.
	}
	for _, f := range [...]field{fieldSE, fieldSP} {
		if s.text[f] == "" {
			return missing(f)
		}
	}
	return nil
}

// isOf reports whether a text has no other letters than these, in any order.
func isOf(text, letters string) bool { return strings.Trim(text, letters) == "" }

// parse reads the fields that are more than text.
func (s *SAS) parse() (err error) {
	if s.start, err = parseTime(s.text[fieldST]); err != nil {
		return err
	}
	if s.expiry, err = parseTime(s.text[fieldSE]); err != nil {
		return err
	}
	switch s.text[fieldSPR] {
	case "", "https", "https,http", "http,https":
	default:
		return errMalformed
	}
	if sip := s.text[fieldSIP]; sip != "" {
		first, last, isRange := strings.Cut(sip, "-")
		if !isRange {
			last = first
		}
		var err1, err2 error
		s.first, err1 = netip.ParseAddr(first)
		s.last, err2 = netip.ParseAddr(last)
		if err1 != nil || err2 != nil || !s.first.Is4() || !s.last.Is4() {
			return errMalformed
		}
	}
	if s.service == geo.Table && !s.ofAccount {
		return s.parseKeys()
	}
	return nil
}

// parseTime reads a time; an empty one is zero.
func parseTime(text string) (geo.Timestamp, error) {
	if text == "" {
		return 0, nil
	}
	if ts, ok := wire.ParseShortISO(text); ok {
		return ts, nil
	}
	return 0, errMalformed
}

// parseKeys reads the range of keys. An empty end is an open one, since its text is signed as one that is missing.
func (s *SAS) parseKeys() error {
	spk, srk, epk, erk := s.text[fieldSPK], s.text[fieldSRK], s.text[fieldEPK], s.text[fieldERK]
	switch {
	case spk == "" && srk != "" || epk == "" && erk != "":
		return errMalformed
	case spk == "" && epk == "":
		return nil
	}
	s.keys = &tables.KeyRange{FromPK: spk, FromRK: srk, ToPK: epk, ToRK: erk, Open: epk == ""}
	return nil
}
