package stamp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// Of a range that has no leader, or one that does not answer.
const (
	// leaderWait is how long a request waits at most.
	leaderWait = 5 * time.Second
	// electionMax is how long a range without a leader is taken to be about to elect one.
	// It is two election timeouts, unless node.Options has other ones: enough for one more
	// round after split votes. Requests that come later are not held up.
	electionMax = 2 * time.Second
)

// handTimeout bounds how long a command that was handed to another node waits for its
// result. What stands still that long is a stopped process, or a range that commits
// nothing.
const handTimeout = 10 * time.Second

// submitMethod hands a command to the node that leads its range.
const submitMethod = "stamp.submit"

// Submit runs a command on the leader of a range and waits for its result: nil when
// its effect is on every in-sync replica. A command that found no leader did nothing
// and is tried again for a while; one that was proposed, or that another node may have
// got, never is (R2). Where another node leads, a ranges.Portable is handed to it; any
// other command waits for a leader here.
func (s *Stamp) Submit(ctx context.Context, id geo.RangeID, cmd ranges.Command) error {
	calls, _ := s.o.Transport.(node.CallTransport)
	portable, _ := cmd.(ranges.Portable)
	return s.withLeader(ctx, id, func() error {
		if r := s.Leader(id); r != nil {
			return submitHere(ctx, r, cmd)
		}
		if portable == nil || calls == nil {
			return ranges.ErrNotLeader
		}
		return s.hand(ctx, calls, id, portable)
	})
}

func submitHere(ctx context.Context, r *ranges.Range, cmd ranges.Command) error {
	done := make(chan error, 1)
	r.Submit(cmd, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return kv.ErrUnknown
	}
}

// hand gives a command to the node that leads; ranges.ErrNotLeader where that is not
// known, or not reachable, or does not lead: nothing happened.
func (s *Stamp) hand(ctx context.Context, calls node.CallTransport, id geo.RangeID, cmd ranges.Portable) error {
	to, ok := s.LeaderNode(id)
	if !ok || s.Node(to) != nil { // One that runs here leads, or is about to.
		return ranges.ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(ctx, handTimeout)
	defer cancel()
	result, err := calls.Call(ctx, s.self(), to, submitMethod, appendCommand(nil, id, cmd))
	if errors.Is(err, node.ErrUnreachable) {
		return ranges.ErrNotLeader
	}
	if err != nil {
		return err
	}
	if err := cmd.DecodeResult(result); err != nil {
		return fmt.Errorf("result of %s from node %d: %w: %w", cmd.Kind(), to, kv.ErrUnknown, err)
	}
	return nil
}

// self is the node of this process, or one of them, in whose name calls are made.
func (s *Stamp) self() geo.NodeID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, id := range s.o.Peers {
		if s.nodes[id] != nil {
			return id
		}
	}
	return 0
}

// withLeader calls f until it finds the leader, for leaderWait, or until none is to be
// expected: kv.ErrBusy then, and nothing happened.
func (s *Stamp) withLeader(ctx context.Context, id geo.RangeID, f func() error) error {
	deadline := s.o.Clock.Mono() + leaderWait
	for {
		err := f()
		if !errors.Is(err, ranges.ErrNotLeader) {
			return err
		}
		if s.o.Clock.Mono() > deadline || s.Leaderless(id) {
			return kv.ErrBusy
		}
		select {
		case <-ctx.Done():
			return kv.ErrBusy
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Leaderless reports whether the replicas that run in this process have known no leader of
// a range for so long that none is to be expected soon: too few nodes are there, or reach
// each other. Where none runs nothing is known.
func (s *Stamp) Leaderless(id geo.RangeID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	known := false
	for _, p := range s.o.Peers {
		if r := s.nodes[p]; r != nil && r.n.Range(id) != nil {
			lasts, leaderless := r.n.Range(id).Leaderless()
			if !leaderless || lasts <= electionMax {
				return false
			}
			known = true
		}
	}
	return known
}

// submitted answers submitMethod at a node.
func (s *Stamp) submitted(id geo.NodeID) node.CallHandler {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		rid, kind, body, err := parseCommand(body)
		if err != nil {
			return nil, err
		}
		decode := s.o.Commands[kind]
		if decode == nil {
			return nil, fmt.Errorf("node %d does not know commands of kind %q", id, kind)
		}
		cmd, err := decode(body)
		if err != nil {
			return nil, fmt.Errorf("command %s: %w", kind, err)
		}
		n := s.Node(id)
		if n == nil || n.Range(rid) == nil {
			return nil, ranges.ErrNotLeader
		}
		if err := submitHere(ctx, n.Range(rid), cmd); err != nil {
			return nil, err
		}
		return cmd.EncodeResult(), nil
	}
}

// errCommand: bytes that are no command.
var errCommand = errors.New("node: malformed command")

// A command travels as the range's id and the length of its kind, both varints, its kind,
// and itself.
func appendCommand(dst []byte, id geo.RangeID, cmd ranges.Portable) []byte {
	kind := cmd.Kind()
	dst = binary.AppendUvarint(dst, uint64(id))
	dst = binary.AppendUvarint(dst, uint64(len(kind)))
	return append(append(dst, kind...), cmd.Encode()...)
}

func parseCommand(b []byte) (id geo.RangeID, kind string, body []byte, err error) {
	var v [2]uint64
	for i := range v {
		n := 0
		if v[i], n = binary.Uvarint(b); n <= 0 {
			return 0, "", nil, errCommand
		}
		b = b[n:]
	}
	if v[0] > 1<<32-1 || v[1] > uint64(len(b)) {
		return 0, "", nil, errCommand
	}
	return geo.RangeID(v[0]), string(b[:v[1]]), b[v[1]:], nil
}
