package client

import (
	"context"
	"fmt"
	"sync"
)

// Endpoint is one of the two names under which an account is reached (protocol/service.md 13).
type Endpoint int

const (
	// Primary is the endpoint that takes writes.
	Primary Endpoint = iota
	// Secondary is the -secondary endpoint. It takes reads only.
	Secondary
)

// String returns "primary" or "secondary".
func (e Endpoint) String() string {
	if e == Secondary {
		return "secondary"
	}
	return "primary"
}

// LocationMode is which endpoints the tries of a read go to (protocol/service.md 13). Writes go to the primary in every mode
// but SecondaryOnly, in which they fail with ErrWrite.
type LocationMode int

const (
	// PrimaryOnly reads from the primary endpoint.
	PrimaryOnly LocationMode = iota
	// PrimaryThenSecondary reads from the primary endpoint, then from the secondary, and so on in turn.
	PrimaryThenSecondary
	// SecondaryOnly reads from the secondary endpoint.
	SecondaryOnly
	// SecondaryThenPrimary reads from the secondary endpoint, then from the primary, and so on in turn.
	SecondaryThenPrimary
)

// String returns the name of the mode.
func (m LocationMode) String() string {
	names := [...]string{"PrimaryOnly", "PrimaryThenSecondary", "SecondaryOnly", "SecondaryThenPrimary"}
	if m.valid() {
		return names[m]
	}
	return fmt.Sprintf("LocationMode(%d)", int(m))
}

func (m LocationMode) valid() bool { return m >= PrimaryOnly && m <= SecondaryThenPrimary }

// first is where the first try goes.
func (m LocationMode) first() Endpoint {
	if m == SecondaryOnly || m == SecondaryThenPrimary {
		return Secondary
	}
	return Primary
}

// next is where the try after one at last goes.
func (m LocationMode) next(last Endpoint) Endpoint {
	switch m {
	case PrimaryThenSecondary, SecondaryThenPrimary:
		return 1 - last
	default:
		return m.first()
	}
}

// only is the mode that reads from one endpoint.
func only(e Endpoint) LocationMode {
	if e == Secondary {
		return SecondaryOnly
	}
	return PrimaryOnly
}

// Keys of what a context carries.
type (
	modeKey  struct{}
	retryKey struct{}
	pinKey   struct{}
)

// WithLocationMode returns a context whose requests have this mode, whatever that of their client is.
func WithLocationMode(ctx context.Context, m LocationMode) context.Context {
	return context.WithValue(ctx, modeKey{}, m)
}

// WithRetryPolicy returns a context whose requests have this retry policy, whatever that of their client is.
func WithRetryPolicy(ctx context.Context, r RetryPolicy) context.Context {
	return context.WithValue(ctx, retryKey{}, r)
}

// Pin returns a context whose reads all go to one endpoint: that of the first one that succeeds. The pages of one listing are
// read with one such context, so that none of them is older than the one before it; a token of a listing works at both
// endpoints. Writes are not bound by it.
func Pin(ctx context.Context) context.Context { return context.WithValue(ctx, pinKey{}, new(pin)) }

// pin is the endpoint that reads of a context are bound to.
type pin struct {
	mu sync.Mutex
	// at is nil until a read has succeeded. Guarded by mu.
	at *Endpoint
}

// mode is that of a read: that of the endpoint once it is known.
func (p *pin) mode(m LocationMode) LocationMode {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at != nil {
		return only(*p.at)
	}
	return m
}

// succeeded binds the reads that follow.
func (p *pin) succeeded(e Endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at = &e
	}
}
