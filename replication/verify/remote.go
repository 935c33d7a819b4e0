package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"antipode/geo"
)

// Peer answers questions about snapshots of a location: Sessions, or a Remote.
type Peer interface {
	Ask(ctx context.Context, r geo.RangeID, q *Question) (*Answer, error)
}

// Remote asks the Sessions of the other location.
type Remote struct {
	// Call has Sessions.Serve of the other location answer.
	Call func(ctx context.Context, r geo.RangeID, question []byte) ([]byte, error)
	// crossed counts the bytes of questions and answers.
	crossed atomic.Uint64
}

// Crossed is how many bytes questions and answers had so far.
func (r *Remote) Crossed() uint64 { return r.crossed.Load() }

// Ask implements Peer.
func (r *Remote) Ask(ctx context.Context, id geo.RangeID, q *Question) (*Answer, error) {
	question, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	r.crossed.Add(uint64(len(question)))
	b, err := r.Call(ctx, id, question)
	if err != nil {
		return nil, err
	}
	r.crossed.Add(uint64(len(b)))
	var a Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return &a, nil
}
