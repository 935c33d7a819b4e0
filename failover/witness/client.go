package witness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
)

// answerMax bounds an answer: ClaimsMax claims.
const answerMax = 32 << 20

// Client calls the witness from a node. Methods may be called concurrently.
type Client struct {
	// HTTP has the node's certificate and accepts the witness's alone. It must not follow redirects.
	HTTP *http.Client
	// URL is that of the witness, https://host:port.
	URL   string
	Clock clock.Clock

	mu sync.Mutex
	// known is where the witness was at the last answer: so a claim that is sent from there does not look late.
	known Position
}

// Renew renews the lease of the node's location: see Witness.Renew. The caller counts the lease from before the call.
func (c *Client) Renew(ctx context.Context, after uint64) (g Grant, err error) {
	if err = c.call(ctx, pathRenew, renewal{after}, &g); err == nil {
		c.knows(g.Position)
	}
	return g, err
}

func (c *Client) knows(p Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = p
}

// sent returns claims as they are sent now.
func (c *Client) sent(page []Claim) claims {
	c.mu.Lock()
	defer c.mu.Unlock()
	return claims{page, c.known}
}

// claimsPage is how many claims one call carries.
const claimsPage = 1000

// Claim registers that the node's location is about to become the primary of accounts in the given epochs. It returns
// the monotonic time of this node from which no lease of another location holds for them (R21). R19's commit must not
// be before. It may be called again with the same epochs, after an error or a restart. After an error other than
// ErrPassed it is not known which claims are registered: they may keep the present primary from acknowledging until
// Withdraw.
func (c *Client) Claim(ctx context.Context, epochs map[geo.Account]geo.EpochNumber, here geo.Location) (until time.Duration, err error) {
	var page []Claim
	send := func() error {
		var out claimed
		err := c.call(ctx, pathClaim, c.sent(page), &out)
		if errors.Is(err, ErrLate) { // The client was new, or away for long: from where the witness is now, once more.
			err = c.call(ctx, pathClaim, c.sent(page), &out)
		}
		if err != nil {
			return err
		}
		until = max(until, c.Clock.Mono()+out.Wait)
		page = page[:0]
		return nil
	}
	for name, n := range epochs {
		if page = append(page, Claim{Account: name, Number: n, Location: here}); len(page) == claimsPage {
			if err := send(); err != nil {
				return 0, err
			}
		}
	}
	if len(page) > 0 {
		err = send()
	}
	return until, err
}

// Withdraw takes back a claim of the node's location: see Witness.Withdraw.
func (c *Client) Withdraw(ctx context.Context, a geo.Account, n geo.EpochNumber) error {
	return c.call(ctx, pathWithdraw, withdrawal{a, n}, &struct{}{})
}

func (c *Client) call(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.HTTP.Do(r)
	if err != nil {
		if of := (*url.Error)(nil); errors.As(err, &of) { // Operators are shown the address beside it.
			err = of.Err
		}
		return fmt.Errorf("witness: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var why refusal
		_ = json.Unmarshal(b, &why) // What cannot be read has no reason.
		switch resp.StatusCode {
		case http.StatusConflict:
			return fmt.Errorf("%w: %s", ErrPassed, why.Error)
		case http.StatusPreconditionFailed:
			c.knows(why.Now)
			return ErrLate
		}
		return fmt.Errorf("witness: %s: %s", resp.Status, why.Error)
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("witness: malformed answer: %w", err)
	}
	return nil
}
