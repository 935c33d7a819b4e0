package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"antipode/geo"
	"antipode/test/rest"
)

const (
	policyQueues  = 20
	policyLetters = 250_000     // of a permission: as one tenant has stored them
	policyEvery   = time.Second // between two documents of a client
)

// Attacks that a server only refuses.
const (
	KindOfPolicies = "queue, policies of 250,000 letters"
	KindOfHosts    = "table, name of somebody else"
	KindOfProbes   = "table, pretended hop"
	KindOfPaths    = "queue, path that is none"
)

// StorePolicies adds n clients that set the stored access policies of queues, each to a permission of 250,000 letters.
func (h *Crowd) StorePolicies(n int) {
	const before = "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>"
	const behind = "</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
	body := before + strings.Repeat("raup", policyLetters/4) + behind
	for i := range n {
		target := fmt.Sprintf("/%s%d?comp=acl", longQueue, i%policyQueues)
		h.add(1, KindOfPolicies, func(ctx context.Context, c net.Conn) string {
			defer pause(ctx, policyEvery)
			head, err := h.head(geo.Queue, http.MethodPut, target, int64(len(body)), nil)
			return send(c, head+body, err)
		})
	}
}

func (h *Crowd) preparePolicies(ctx context.Context) error {
	for i := range policyQueues {
		if err := h.Client.CreateQueue(ctx, fmt.Sprint(longQueue, i)); err != nil {
			return err
		}
	}
	return nil
}

// Pretend adds n clients with the right key, which send their requests to a name that is not the server's, as a web page
// does whose owner lets it lead there; and as many without the victim's key, which pretend to a location to be a gateway, to learn
// where the victim is served. The victim's client is that of the location.
func (h *Crowd) Pretend(n int, victim *rest.Client) {
	h.add(n, KindOfHosts, func(_ context.Context, c net.Conn) string {
		head, err := h.head(geo.Table, http.MethodGet, "/Tables", 0, jsonHeader())
		return send(c, strings.Replace(head, "Host: "+hostOf(h.Client.Base[geo.Table]), "Host: rebound.example", 1), err)
	})
	wrong := *victim
	wrong.Key = []byte("not the key")
	h.addAt(n, KindOfProbes, hostOf(victim.Base[geo.Table]), func(_ context.Context, c net.Conn) string {
		head, err := signedHead(&wrong, geo.Table, http.MethodGet, "/Tables", 0,
			map[string]string{"X-Antipode-Gateway": "gateway", "X-Antipode-Gateway-Ask": "gateway"})
		if err != nil {
			return err.Error()
		}
		if _, err := io.WriteString(c, head); err != nil {
			return ""
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return ""
		}
		defer func() { _ = resp.Body.Close() }()
		if at := resp.Header.Get("X-Antipode-Served-By"); at != "" {
			return "names " + at
		}
		return resp.Status
	})
}

// Misspell adds n clients that send a path that HTTP itself refuses. What is answered must be the service's, with its server's
// name and the id of the request.
func (h *Crowd) Misspell(n int) {
	h.add(n, KindOfPaths, func(_ context.Context, c net.Conn) string {
		if _, err := io.WriteString(c, "GET /a%zz HTTP/1.1\r\nHost: "+hostOf(h.Client.Base[geo.Queue])+"\r\n\r\n"); err != nil {
			return ""
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return ""
		}
		defer func() { _ = resp.Body.Close() }()
		return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("x-ms-error-code"), " ", resp.Header.Get("x-ms-request-id") != "")
	})
}

// Outcomes are how often the attacks of a kind ended in which way: the first line of the server's answer, without the
// version of HTTP.
func (h *Crowd) Outcomes(kind string) map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[kind]
}
