package accounts

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"antipode/api/protocol"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// subdomain is one label of a host name or more.
var subdomain = regexp.MustCompile(`^[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*$`)

// Preflight answers an OPTIONS request, which never needs a signature and looks at no resource
// (protocol/blob.md 20.1).
func (h *Handler) Preflight(ctx context.Context, w http.ResponseWriter, r *protocol.Request) error {
	origin, method := r.Header("Origin"), r.Header("Access-Control-Request-Method")
	if origin == "" || method == "" {
		return storageerr.NoCORSHeader
	}
	p, err := h.read(ctx, r)
	if err != nil {
		return err
	}
	asked := r.Header("Access-Control-Request-Headers")
	rule := ruleOf(p.CORS, r.HTTP.Header, method)
	if rule == nil || slices.ContainsFunc(entries(asked), func(name string) bool { return !listed(rule.Allowed, name) }) {
		return storageerr.CORSPreflightFailure
	}
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", origin)
	head.Set("Access-Control-Allow-Credentials", "true")
	head.Set("Access-Control-Allow-Methods", method)
	if asked != "" {
		head.Set("Access-Control-Allow-Headers", asked)
	}
	head.Set("Access-Control-Max-Age", strconv.Itoa(rule.MaxAge))
	head.Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

// AllowOrigin adds to an answer, whose other headers are set, what a browser needs to know of the origins that may read it
// (protocol/blob.md 20.3, 20.4). What a cache may keep also depends on the rules when the request has no Origin: the cache
// may answer one that has. A second call changes nothing.
func AllowOrigin(head http.Header, r *http.Request, rules []catalog.CORSRule) {
	origin, cached := r.Header.Get("Origin"), r.Method == http.MethodGet || r.Method == http.MethodHead
	if len(rules) == 0 || origin == "" && !cached {
		return
	}
	rule := ruleOf(rules, r.Header, r.Method)
	if rule != nil {
		if exposed := exposedOf(rule, head); exposed != "" {
			head.Set("Access-Control-Expose-Headers", exposed)
		}
		if slices.Contains(rule.Origins, "*") {
			head.Set("Access-Control-Allow-Origin", "*")
			return
		}
		head.Set("Access-Control-Allow-Origin", origin)
		head.Set("Access-Control-Allow-Credentials", "true")
	}
	if cached {
		head.Set("Vary", "Origin")
	}
}

// exposedOf names the headers of an answer that a rule exposes. Those by which our front ends inform each other stay with
// them.
func exposedOf(rule *catalog.CORSRule, head http.Header) string {
	var exposed []string
	for name := range head {
		hop := strings.HasPrefix(name, "X-Antipode-") && name != protocol.HeaderMayBeStale
		if !hop && !strings.HasPrefix(name, "Access-Control-") && listed(rule.Exposed, name) {
			exposed = append(exposed, name)
		}
	}
	slices.Sort(exposed)
	return strings.Join(exposed, ",")
}

// ruleOf returns the first rule that lets the origin of a request use a method, which decides alone; nil if none does.
// Without an origin it is one for all of them. Origins that differ fit no rule: a proxy or a cache may act on the other one.
func ruleOf(rules []catalog.CORSRule, head http.Header, method string) *catalog.CORSRule {
	origin := head.Get("Origin")
	if slices.ContainsFunc(head["Origin"], func(other string) bool { return other != origin }) {
		return nil
	}
	i := slices.IndexFunc(rules, func(r catalog.CORSRule) bool {
		return slices.Contains(r.Methods, method) &&
			slices.ContainsFunc(r.Origins, func(allowed string) bool { return allows(allowed, origin) })
	})
	if i < 0 {
		return nil
	}
	return &rules[i]
}

// allows reports whether an entry of AllowedOrigins matches an origin: *, the origin itself, or one with * in place of
// the subdomain, which may have several labels. The * stands for nothing but labels of a host name: any other character may
// end the host that a browser takes from the origin before the allowed domain begins.
func allows(allowed, origin string) bool {
	if allowed == "*" || allowed == origin {
		return true
	}
	scheme, domain, wild := strings.Cut(allowed, "://*.")
	if !wild || scheme == "" || domain == "" {
		return false
	}
	sub, under := strings.CutPrefix(origin, scheme+"://")
	sub, within := strings.CutSuffix(sub, "."+domain)
	return under && within && subdomain.MatchString(sub)
}

// listed reports whether a list has the name of a header, or a prefix of it, in any case.
func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		prefix, isPrefix := strings.CutSuffix(entry, "*")
		if isPrefix {
			return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
		}
		return strings.EqualFold(entry, name)
	})
}
