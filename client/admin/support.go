package admin

import (
	"context"
)

// SupportCut ends a part of a Support that was longer.
const SupportCut = "\n[cut: it was longer]\n"

// Support is what a process knows of itself for those who look for a fault: the answer of GET /v1/support, and of
// GET /v1/nodes/{node}/support. It holds no key, password, token or signature. Each part is bounded; one that is cut ends
// with SupportCut.
type Support struct {
	// Name is that of the node, or "gateway".
	Name string `json:"name"`
	// Version is of the program and of the language, and the revision that it was built from, as far as it knows.
	Version string `json:"version"`
	// Config is the configuration as the process uses it, in YAML, defaults included. Empty without a file.
	Config string `json:"config"`
	// Metrics are what a scrape would answer.
	Metrics string `json:"metrics"`
	// Goroutines are the stacks of all goroutines.
	Goroutines string `json:"goroutines"`
}

// Support returns what the process that answers knows of itself. It needs the token.
func (c *Client) Support(ctx context.Context) (Support, error) {
	return CallSupport.Do(ctx, c, At{}, None{})
}

// NodeSupport returns what the process of a node knows of itself. It needs the token.
func (c *Client) NodeSupport(ctx context.Context, node string) (Support, error) {
	return CallNodeSupport.Do(ctx, c, At{Node: node}, None{})
}
