package dev

import (
	"context"
	"fmt"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
)

// Pauses between two attempts at a step that may succeed later, and between two checks whether
// the statistics of an account are live.
const (
	retryPause = 200 * time.Millisecond
	livePoll   = 20 * time.Millisecond
)

// EnsureAccount makes an account whose primary is l, unless either location has it: see
// directory.Directory.Ensure. It waits for ranges that are busy or have no leader until ctx
// ends, and finishes a creation that stopped half way.
func (c *Cluster) EnsureAccount(ctx context.Context, l geo.Location, name geo.Account, key1, key2 []byte) error {
	loc := c.locations[l]
	if loc == nil {
		return fmt.Errorf("unknown location %q: want %s or %s", l, North, South)
	}
	defer c.step.Store(nil)
	_, err := loc.Directory.Ensure(ctx, name, key1, key2, func(ctx context.Context, step string, err error) error {
		step = fmt.Sprintf("%s (%v)", step, err)
		c.step.Store(&step)
		return clock.Wait(ctx, retryPause)
	})
	return err
}

// WaitLive waits until the primary of an account takes its writes, and its statistics are live for every service, if it has
// a secondary. It returns the account with its endpoints.
func (c *Cluster) WaitLive(ctx context.Context, name geo.Account) (wire.AccountInfo, error) {
	for {
		a, err := c.admin.Account(ctx, name)
		if err == nil && c.live(ctx, a.Account) {
			return a, nil
		}
		if err := clock.Wait(ctx, livePoll); err != nil {
			return wire.AccountInfo{}, fmt.Errorf("account %s is not live yet: %w", name, err)
		}
	}
}

func (c *Cluster) live(ctx context.Context, info wire.Account) bool {
	a, err := c.locations[info.Primary].Record(ctx, info.Name)
	live := err == nil && c.locations[info.Primary].UpToDate(a) // Else its first writes get 503 (R21).
	for _, s := range geo.Services {
		live = live && (a.Secondary == "" || c.locations[a.Secondary].ReplicationNow(a, s).Known())
	}
	return live
}

// Waiting returns what the cluster waits for before it is ready, "" once it is.
func (c *Cluster) Waiting(ctx context.Context) string {
	reason := ""
	for _, name := range order() {
		r := c.locations[name].Readiness(ctx)
		if !r.Serving { // Everything else waits for this.
			return string(name) + ": " + r.Reason
		}
		if reason == "" && !r.Ready {
			reason = string(name) + ": " + r.Reason
		}
	}
	if step := c.step.Load(); step != nil {
		return *step
	}
	return reason
}
