package wire

import (
	"strings"
	"unicode/utf16"

	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// Limits of stored access policies (protocol/queue.md 2).
const (
	policiesMax   = 5
	policyIDUnits = 64 // UTF-16 code units
)

// ParsePolicies reads the body of a Set ACL (protocol/queue.md 7.5). An empty one clears all policies. letters are
// the permissions of the service.
func ParsePolicies(body []byte, letters string) ([]catalog.Policy, error) {
	if len(body) == 0 {
		return nil, nil
	}
	root, err := ParseElement(body)
	if err != nil {
		return nil, err
	}
	if root.Name != "SignedIdentifiers" || !isXMLSpace(root.Text) {
		return nil, storageerr.InvalidXMLDocument.With("Reason", "The document is no list of SignedIdentifiers.")
	}
	var out []catalog.Policy
	seen := map[string]bool{}
	for _, e := range root.Children {
		p, err := parsePolicy(e, letters)
		switch {
		case err != nil:
			return nil, err
		case len(out) == policiesMax:
			return nil, storageerr.InvalidXMLDocument.With("Reason", "There are more than 5 policies.")
		case seen[p.ID]:
			return nil, storageerr.InvalidXMLDocument.With("Reason", "An Id is there more than once.")
		}
		seen[p.ID] = true
		out = append(out, p)
	}
	return out, nil
}

func parsePolicy(e *Element, letters string) (p catalog.Policy, err error) {
	if e.Name != "SignedIdentifier" {
		return p, storageerr.InvalidXMLDocument.With("Reason", "The document is no list of SignedIdentifiers.")
	}
	if err := e.Container("Id", "AccessPolicy"); err != nil {
		return p, err
	}
	id := e.Child("Id")
	if id == nil {
		return p, storageerr.MissingXMLNode.With("XmlNodeName", "Id")
	}
	if p.ID, err = id.Leaf(); err != nil {
		return p, err
	}
	if n := len(utf16.Encode([]rune(p.ID))); n == 0 || n > policyIDUnits {
		return p, storageerr.InvalidXMLDocument.With("Reason", "An Id has 1 to 64 characters.")
	}
	access := e.Child("AccessPolicy")
	if access == nil {
		return p, nil
	}
	if err := access.Container("Start", "Expiry", "Permission"); err != nil {
		return p, err
	}
	for _, c := range access.Children {
		text, err := c.Leaf()
		if err != nil {
			return p, err
		}
		switch text = strings.Trim(text, " \t\r\n"); c.Name {
		case "Start":
			p.Start, err = parsePolicyTime(c.Name, text)
		case "Expiry":
			p.Expiry, err = parsePolicyTime(c.Name, text)
		default:
			p.Permission, err = text, checkLetters(c.Name, text, letters)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// checkLetters refuses permissions that the service does not have, and any that is there twice: it would be stored.
func checkLetters(name, text, letters string) error {
	for i, l := range []byte(text) {
		if strings.IndexByte(letters, l) < 0 || strings.IndexByte(text[:i], l) >= 0 {
			return BadNode(name, text[:min(len(text), 2*len(letters))], "The permissions of the service are "+letters+", each once.")
		}
	}
	return nil
}

// parsePolicyTime reads the forms that protocol/queue.md 7.5 names, and returns the one that is stored. An empty
// one is none.
func parsePolicyTime(name, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	ts, ok := ParseShortISO(text)
	if !ok {
		return "", BadNode(name, text, "The value is no time of the form YYYY-MM-DDThh:mm:ssZ.")
	}
	return string(AppendISOPadded(nil, ts)), nil
}

// AppendPolicies appends the answer to a Get ACL.
func AppendPolicies(b []byte, list []catalog.Policy) []byte {
	b = append(b, XMLStart...)
	if len(list) == 0 {
		return append(b, "<SignedIdentifiers />"...)
	}
	b = append(b, "<SignedIdentifiers>"...)
	for _, p := range list {
		b = AppendElement(append(b, "<SignedIdentifier>"...), "Id", p.ID)
		b = append(b, "<AccessPolicy>"...)
		for i, text := range [...]string{p.Start, p.Expiry, p.Permission} {
			if text != "" {
				b = AppendElement(b, [...]string{"Start", "Expiry", "Permission"}[i], text)
			}
		}
		b = append(b, "</AccessPolicy></SignedIdentifier>"...)
	}
	return append(b, "</SignedIdentifiers>"...)
}
