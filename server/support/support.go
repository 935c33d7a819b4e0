package support

import (
	"fmt"
	"net/url"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"go.yaml.in/yaml/v3"

	wire "antipode/client/admin"
)

// partMax bounds each part of an answer, in bytes: three of them fit into a call between processes.
const partMax = 2 << 20

// Source is the process.
type Source struct {
	Name string
	// Config is the configuration, a struct of package config; nil without one.
	Config   any
	Gatherer prometheus.Gatherer
}

// Gather returns what the process knows of itself. What cannot be gathered says why, in its place.
func (s Source) Gather() wire.Support {
	return wire.Support{
		Name: s.Name, Version: version(), Config: bounded(s.config(), partMax), Metrics: bounded(s.metrics(), partMax), Goroutines: bounded(goroutines(), partMax),
	}
}

// bounded removes what looks like a secret, and cuts a part that is too long: in that order, since half a secret does not
// look like one.
func bounded(part string, most int) string {
	part = wire.Scrub(part)
	if len(part) > most {
		part = strings.ToValidUTF8(part[:most-len(wire.SupportCut)], "") + wire.SupportCut
	}
	return part
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	}
	out := fmt.Sprintf("%s %s, %s %s/%s", info.Main.Path, info.Main.Version, info.GoVersion, runtime.GOOS, runtime.GOARCH)
	for _, set := range info.Settings {
		if strings.HasPrefix(set.Key, "vcs.") {
			out += ", " + set.Key + " " + set.Value
		}
	}
	return out
}

// config returns the configuration without what a URL may carry beside its address.
func (s Source) config() string {
	if s.Config == nil {
		return ""
	}
	var doc yaml.Node
	if err := doc.Encode(s.Config); err != nil {
		return "cannot be written: " + err.Error()
	}
	strip(&doc)
	text, err := yaml.Marshal(&doc)
	if err != nil {
		return "cannot be written: " + err.Error()
	}
	return string(text)
}

// strip removes user, query and fragment of all URLs in a document, and the path of one with a query: it may be a secret
// too.
func strip(n *yaml.Node) {
	for _, child := range n.Content {
		strip(child)
	}
	if n.Kind != yaml.ScalarNode || !strings.Contains(n.Value, "://") {
		return
	}
	u, err := url.Parse(n.Value)
	if err != nil {
		n.Value = "[a URL that cannot be read]"
		return
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" {
		n.Value = u.Scheme + "://" + u.Host + "/[removed]"
	}
}

// metrics returns the metrics, up to the first one after partMax: to look for secrets in what is cut takes seconds.
func (s Source) metrics() string {
	families, err := s.Gatherer.Gather()
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil || b.Len() > partMax {
			break
		}
	}
	if err != nil {
		fmt.Fprintf(&b, "# not all could be gathered: %v\n", err)
	}
	return b.String()
}

// goroutines returns the stacks of all goroutines, which stop meanwhile for some milliseconds; their arguments are
// addresses.
func goroutines() string {
	var b strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return "cannot be written: " + err.Error()
	}
	return b.String()
}
