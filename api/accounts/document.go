package accounts

import (
	"slices"
	"strconv"
	"strings"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

const (
	retentionDaysMax = 365
	logFormat        = "1.0"
	logFormat2       = "2.0"
)

// parseProperties reads the document of a Set Service Properties (protocol/service.md 2.2) as the change that it
// asks for.
func parseProperties(body []byte, s geo.Service, v protocol.Version) (func(*catalog.Properties), error) {
	root, err := wire.ParseElement(body)
	if err != nil {
		return nil, err
	}
	if root.Name != "StorageServiceProperties" {
		return nil, storageerr.InvalidXMLDocument.With("Reason", "The document is no StorageServiceProperties.")
	}
	if err := root.Container(childrenOf(s, v)...); err != nil {
		return nil, err
	}
	if v < protocol.Version20130815 {
		for _, name := range [...]string{"Logging", "Metrics"} {
			if root.Child(name) == nil {
				return nil, missing(name)
			}
		}
	}
	var changes []func(*catalog.Properties)
	for _, e := range root.Children {
		set, err := parseChild(e, s)
		if err != nil {
			return nil, err
		}
		changes = append(changes, set)
	}
	return func(p *catalog.Properties) {
		for _, set := range changes {
			set(p)
		}
	}, nil
}

func missing(name string) error { return storageerr.MissingXMLNode.With("XmlNodeName", name) }

func parseChild(e *wire.Element, s geo.Service) (set func(*catalog.Properties), err error) {
	switch e.Name {
	case "Logging":
		l, err := parseLogging(e, s)
		return func(p *catalog.Properties) { p.Logging = l }, err
	case "Metrics", "HourMetrics":
		m, err := parseMetrics(e)
		return func(p *catalog.Properties) { p.HourMetrics = m }, err
	case "MinuteMetrics":
		m, err := parseMetrics(e)
		return func(p *catalog.Properties) { p.MinuteMetrics = m }, err
	case "Cors":
		rules, err := parseRules(e)
		return func(p *catalog.Properties) { p.CORS = rules }, err
	case "DefaultServiceVersion":
		text, err := e.Leaf()
		if _, bad := protocol.Effective(text); err == nil && bad != nil {
			err = wire.BadNode(e.Name, text, "The value is no version of the service.")
		}
		return func(p *catalog.Properties) { p.DefaultVersion = text }, err
	}
	// Deleted blobs that are kept, and web sites. Who switches them on relies on them, and they are not built.
	on, err := parseBool(e, "Enabled")
	if err == nil && on {
		err = storageerr.NotImplemented
	}
	return func(*catalog.Properties) {}, err
}

// whole reports an error unless an element has all of its children, each once.
func whole(e *wire.Element, children ...string) error {
	if err := e.Container(children...); err != nil {
		return err
	}
	for _, name := range children {
		if e.Child(name) == nil {
			return missing(name)
		}
	}
	return nil
}

func parseLogging(e *wire.Element, s geo.Service) (l *catalog.Logging, err error) {
	if err := whole(e, "Version", "Delete", "Read", "Write", "RetentionPolicy"); err != nil {
		return nil, err
	}
	l = &catalog.Logging{}
	if l.Format, err = e.Child("Version").Leaf(); err != nil {
		return nil, err
	}
	if l.Format != logFormat && (l.Format != logFormat2 || s == geo.Table) {
		return nil, wire.BadNode("Version", l.Format, "The value is no version of logs of the service.")
	}
	for name, to := range map[string]*bool{"Delete": &l.Delete, "Read": &l.Read, "Write": &l.Write} {
		if *to, err = parseBool(e, name); err != nil {
			return nil, err
		}
	}
	l.Retention, err = parseRetention(e.Child("RetentionPolicy"))
	return l, err
}

func parseMetrics(e *wire.Element) (m *catalog.Metrics, err error) {
	if err := e.Container("Version", "Enabled", "IncludeAPIs", "RetentionPolicy"); err != nil {
		return nil, err
	}
	for _, name := range [...]string{"Version", "Enabled", "RetentionPolicy"} {
		if e.Child(name) == nil {
			return nil, missing(name)
		}
	}
	format, err := e.Child("Version").Leaf()
	if err != nil {
		return nil, err
	}
	if format != logFormat {
		return nil, wire.BadNode("Version", format, "The value is no version of metrics.")
	}
	m = &catalog.Metrics{}
	if m.Enabled, err = parseBool(e, "Enabled"); err != nil {
		return nil, err
	}
	if m.Enabled {
		if m.APIs, err = parseBool(e, "IncludeAPIs"); err != nil {
			return nil, err
		}
	}
	m.Retention, err = parseRetention(e.Child("RetentionPolicy"))
	return m, err
}

func parseRetention(e *wire.Element) (r catalog.Retention, err error) {
	if err := e.Container("Enabled", "Days"); err != nil {
		return r, err
	}
	on, err := parseBool(e, "Enabled")
	if err != nil || !on {
		return r, err
	}
	days := e.Child("Days")
	if days == nil {
		return r, missing("Days")
	}
	text, err := days.Leaf()
	if err != nil {
		return r, err
	}
	r.Days, err = strconv.Atoi(text)
	if err != nil || r.Days < 1 || r.Days > retentionDaysMax {
		return r, wire.BadNode("Days", text, "The value is a number of days from 1 to 365.")
	}
	return r, nil
}

// parseBool reads the child of a name, which must be there.
func parseBool(e *wire.Element, name string) (bool, error) {
	c := e.Child(name)
	if c == nil {
		return false, missing(name)
	}
	text, err := c.Leaf()
	switch {
	case err != nil:
		return false, err
	case strings.EqualFold(text, "true"):
		return true, nil
	case strings.EqualFold(text, "false"):
		return false, nil
	}
	return false, wire.BadNode(name, text, "The value is true or false.")
}

// appendProperties appends the document of a Get Service Properties. Nothing of a newer version is in it.
func appendProperties(b []byte, s geo.Service, v protocol.Version, p *catalog.Properties) []byte {
	b = append(b, wire.XMLStart+"<StorageServiceProperties>"...)
	for _, name := range childrenOf(s, v) {
		switch name {
		case "Logging":
			b = appendLogging(b, p.Logging)
		case "Metrics", "HourMetrics":
			b = appendMetrics(b, name, p.HourMetrics)
		case "MinuteMetrics":
			b = appendMetrics(b, name, p.MinuteMetrics)
		case "Cors":
			b = appendRules(b, p.CORS)
		case "DefaultServiceVersion":
			if p.DefaultVersion != "" {
				b = wire.AppendElement(b, name, p.DefaultVersion)
			}
		default:
			b = append(b, "<"+name+"><Enabled>false</Enabled></"+name+">"...)
		}
	}
	return append(b, "</StorageServiceProperties>"...)
}

func appendLogging(b []byte, l *catalog.Logging) []byte {
	if l == nil {
		l = &catalog.Logging{Format: logFormat}
	}
	b = wire.AppendElement(append(b, "<Logging>"...), "Version", l.Format)
	b = wire.AppendElement(b, "Delete", strconv.FormatBool(l.Delete))
	b = wire.AppendElement(b, "Read", strconv.FormatBool(l.Read))
	b = wire.AppendElement(b, "Write", strconv.FormatBool(l.Write))
	return append(appendRetention(b, l.Retention), "</Logging>"...)
}

func appendMetrics(b []byte, name string, m *catalog.Metrics) []byte {
	if m == nil {
		m = &catalog.Metrics{}
	}
	b = wire.AppendElement(append(b, "<"+name+">"...), "Version", logFormat)
	b = wire.AppendElement(b, "Enabled", strconv.FormatBool(m.Enabled))
	if m.Enabled {
		b = wire.AppendElement(b, "IncludeAPIs", strconv.FormatBool(m.APIs))
	}
	return append(appendRetention(b, m.Retention), "</"+name+">"...)
}

func appendRetention(b []byte, r catalog.Retention) []byte {
	b = wire.AppendElement(append(b, "<RetentionPolicy>"...), "Enabled", strconv.FormatBool(r.Days > 0))
	if r.Days > 0 {
		b = wire.AppendElement(b, "Days", strconv.Itoa(r.Days))
	}
	return append(b, "</RetentionPolicy>"...)
}

func appendRules(b []byte, rules []catalog.CORSRule) []byte {
	b = append(b, "<Cors>"...)
	for _, r := range rules {
		b = wire.AppendElement(append(b, "<CorsRule>"...), "AllowedOrigins", strings.Join(r.Origins, ","))
		b = wire.AppendElement(b, "AllowedMethods", strings.Join(r.Methods, ","))
		b = wire.AppendElement(b, "MaxAgeInSeconds", strconv.Itoa(r.MaxAge))
		b = wire.AppendElement(b, "ExposedHeaders", strings.Join(r.Exposed, ","))
		b = wire.AppendElement(b, "AllowedHeaders", strings.Join(r.Allowed, ","))
		b = append(b, "</CorsRule>"...)
	}
	return append(b, "</Cors>"...)
}

// Limits of CORS rules (protocol/service.md 2.2).
const (
	rulesMax      = 5
	rulesBytesMax = 2 << 10
	originsMax    = 64
	literalsMax   = 64
	prefixesMax   = 2
	entryMax      = 256
)

func corsMethods() []string {
	return []string{"DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH"}
}

func parseRules(e *wire.Element) (out []catalog.CORSRule, err error) {
	size := 0
	for _, c := range e.Children {
		if c.Name != "CorsRule" {
			return nil, storageerr.InvalidXMLDocument.With("Reason", "The element Cors has no "+c.Name+".")
		}
		r, n, err := parseRule(c)
		if err != nil {
			return nil, err
		}
		if out, size = append(out, r), size+n; len(out) > rulesMax || size > rulesBytesMax {
			return nil, storageerr.InvalidXMLDocument.With("Reason", "There are more than 5 rules, or more than 2 KiB of them.")
		}
	}
	if strings.TrimSpace(e.Text) != "" {
		return nil, storageerr.InvalidXMLDocument.With("Reason", "The element Cors has text.")
	}
	return out, nil
}

func parseRule(e *wire.Element) (r catalog.CORSRule, size int, err error) {
	err = whole(e, "AllowedOrigins", "AllowedMethods", "MaxAgeInSeconds", "ExposedHeaders", "AllowedHeaders")
	if err != nil {
		return r, 0, err
	}
	for _, c := range e.Children {
		text, err := c.Leaf()
		if err != nil {
			return r, 0, err
		}
		size += len(text)
		list, bad := entries(text), ""
		switch c.Name {
		case "AllowedOrigins":
			if r.Origins = list; len(list) == 0 || len(list) > originsMax {
				bad = "There are 1 to 64 origins."
			}
		case "AllowedMethods":
			r.Methods = list
			if len(list) == 0 || slices.ContainsFunc(list, func(m string) bool { return !slices.Contains(corsMethods(), m) }) {
				bad = "The value is a list of methods."
			}
		case "MaxAgeInSeconds":
			if r.MaxAge, err = strconv.Atoi(strings.TrimSpace(text)); err != nil || r.MaxAge < 0 {
				bad = "The value is a number of seconds."
			}
		case "ExposedHeaders":
			r.Exposed, bad = list, badHeaders(list)
		default:
			r.Allowed, bad = list, badHeaders(list)
		}
		if slices.ContainsFunc(list, func(s string) bool { return len(s) > entryMax }) {
			bad = "An entry has 256 characters at most."
		}
		if bad != "" {
			return r, 0, wire.BadNode(c.Name, text, bad)
		}
	}
	return r, size, nil
}

// entries splits a list at its commas. Empty ones are none.
func entries(text string) (out []string) {
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			out = append(out, entry)
		}
	}
	return out
}

func badHeaders(list []string) string {
	prefixes := 0
	for _, name := range list {
		if strings.HasSuffix(name, "*") {
			prefixes++
		}
	}
	if prefixes > prefixesMax || len(list)-prefixes > literalsMax {
		return "There are 64 names and 2 prefixes at most."
	}
	return ""
}
