package accounts

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"antipode/api/protocol"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// Preflight answers an OPTIONS request, which never needs a signature and looks at no resource
// (protocol/queue.md 6.2).
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
	rule := ruleOf(p.CORS, origin, method, entries(asked))
	if rule == nil {
		return storageerr.CORSPreflightFailure
	}
	head := w.Header()
	allowOrigin(head, rule, origin)
	head.Set("Access-Control-Allow-Methods", method)
	if asked != "" {
		head.Set("Access-Control-Allow-Headers", asked)
	}
	head.Set("Access-Control-Max-Age", strconv.Itoa(rule.MaxAge))
	head.Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

// CORS returns what sets the headers of the answer to a request with an Origin, once its others are set; nil if no rule
// matches (protocol/queue.md 6.2).
func (h *Handler) CORS(ctx context.Context, r *protocol.Request) (func(http.Header), error) {
	origin := r.Header("Origin")
	p, err := h.read(ctx, r)
	if err != nil {
		return nil, err
	}
	rule := ruleOf(p.CORS, origin, r.HTTP.Method, nil)
	if rule == nil {
		return nil, nil
	}
	return func(head http.Header) {
		var exposed []string
		for name := range head {
			if listed(rule.Exposed, name) {
				exposed = append(exposed, name)
			}
		}
		slices.Sort(exposed)
		allowOrigin(head, rule, origin)
		if len(exposed) > 0 {
			head.Set("Access-Control-Expose-Headers", strings.Join(exposed, ","))
		}
	}, nil
}

// ruleOf returns the first rule that lets an origin use a method with some headers; nil if none does.
func ruleOf(rules []catalog.CORSRule, origin, method string, headers []string) *catalog.CORSRule {
	for i := range rules {
		r := &rules[i]
		if !slices.Contains(r.Methods, method) || !slices.Contains(r.Origins, "*") && !slices.Contains(r.Origins, origin) {
			continue
		}
		if !slices.ContainsFunc(headers, func(name string) bool { return !listed(r.Allowed, name) }) {
			return r
		}
	}
	return nil
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

// allowOrigin names the origin that may read the answer. One for all origins may be kept for all of them.
func allowOrigin(head http.Header, r *catalog.CORSRule, origin string) {
	if slices.Contains(r.Origins, "*") {
		head.Set("Access-Control-Allow-Origin", "*")
		return
	}
	head.Set("Access-Control-Allow-Origin", origin)
	head.Set("Access-Control-Allow-Credentials", "true")
	head.Set("Vary", "Origin")
}
