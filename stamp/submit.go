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

// How long a request waits for a range that has no leader, or whose leader does not answer.
const (
	// leaderWait is how long a request waits at most.
	leaderWait = 5 * time.Second
	// electionMax is how long after the loss of its leader a range is expected to elect
	// another one. It is two election timeouts, unless node.Options has other ones: enough for
	// one more round after split votes. Later requests are refused without a wait.
	electionMax = 2 * time.Second
)

// forwardTimeout bounds how long a command that was forwarded to another node waits for its
// result. A leader that takes longer is a stopped process, or leads a range that commits
// nothing.
const forwardTimeout = 10 * time.Second

// submitMethod forwards a command to the node that leads its range.
const submitMethod = "stamp.submit"

// Submit runs a command on the leader of a range and waits for its result: nil when
// its effect is on every in-sync replica. A command that found no leader did nothing
// and is tried again for a while; one that was proposed, or that another node may have
// received, never is (R2). If another node leads, a ranges.Portable is forwarded to it; any
// other command waits for a leader here.
func (s *Stamp) Submit(ctx context.Context, id geo.RangeID, cmd ranges.Command) error {
	calls, _ := s.o.Transport.(node.CallTransport)
	portable, _ := cmd.(ranges.Portable)
	return s.withLeader(ctx, id, func() error {
		if r := s.Leader(id); r != nil {
			return r.Do(ctx, cmd)
		}
		if portable == nil || calls == nil {
			if s.left(id) {
				return kv.ErrBusy
			}
			return ranges.ErrNotLeader
		}
		return s.forward(ctx, calls, id, portable)
	})
}

// left reports whether a node that is going to stop has stepped down from a range, so that a command which
// cannot be forwarded is refused at once. Nothing happened, and the client's next try goes to the leader.
func (s *Stamp) left(id geo.RangeID) bool {
	to, known := s.LeaderNode(id)
	if !known || s.Node(to) != nil {
		return false
	}
	n := s.Node(s.self())
	return n != nil && n.Range(id) != nil && n.Range(id).Leaving()
}

// forward sends a command to the node that leads. ranges.ErrNotLeader: that node is not
// known, not reachable, or does not lead, and nothing happened.
func (s *Stamp) forward(ctx context.Context, calls node.CallTransport, id geo.RangeID, cmd ranges.Portable) error {
	to, ok := s.LeaderNode(id)
	if !ok || s.Node(to) != nil { // One that runs here leads, or is about to.
		return ranges.ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
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

// self is a node that runs in this process, which is the sender of its calls; 0 if none runs.
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

// withLeader calls f until it returns something else than ranges.ErrNotLeader. After
// leaderWait, or when no leader is to be expected, it returns kv.ErrBusy: nothing happened.
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
// a range for so long that none is to be expected soon: too few nodes are up, or reach each
// other. It is false if no replica of the range runs here.
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

// answerSubmit answers submitMethod at a node.
func (s *Stamp) answerSubmit(id geo.NodeID) node.CallHandler {
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
		if err := n.Range(rid).Do(ctx, cmd); err != nil {
			return nil, err
		}
		return cmd.EncodeResult(), nil
	}
}

// errCommand: bytes that are no command.
var errCommand = errors.New("node: malformed command")

// appendCommand encodes a forwarded command: the range's id and the length of the kind, both
// varints, then the kind, then the encoded command.
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
