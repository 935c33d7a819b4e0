package stamp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// submitAllMethod forwards many commands to the node that leads their range.
const submitAllMethod = "stamp.submitAll"

// SubmitAllMax bounds the commands of one SubmitAll: as many have one group (ranges.Range.SubmitAll).
const SubmitAllMax = 500

// SubmitAll is Submit for up to SubmitAllMax commands of one range, which have one group there unless they are large. It
// returns the error of each.
func (s *Stamp) SubmitAll(ctx context.Context, id geo.RangeID, cmds []ranges.Command) []error {
	if len(cmds) > SubmitAllMax {
		return slices.Repeat([]error{fmt.Errorf("%d commands at once, at most %d", len(cmds), SubmitAllMax)}, len(cmds))
	}
	calls, _ := s.o.Transport.(node.CallTransport)
	var errs []error
	err := s.withLeader(ctx, id, func() error {
		if r := s.Leader(id); r != nil {
			errs = r.DoAll(ctx, cmds)
		} else if portable := portables(cmds); portable != nil && calls != nil {
			var err error
			if errs, err = s.forwardAll(ctx, calls, id, portable); err != nil {
				return err
			}
		} else if s.left(id) {
			return kv.ErrBusy
		} else {
			return ranges.ErrNotLeader
		}
		for _, err := range errs {
			if !errors.Is(err, ranges.ErrNotLeader) {
				return nil
			}
		}
		return ranges.ErrNotLeader // All of them: nothing happened.
	})
	if err != nil {
		return slices.Repeat([]error{err}, len(cmds))
	}
	for i, err := range errs {
		if errors.Is(err, ranges.ErrNotLeader) {
			errs[i] = kv.ErrBusy // As Submit: the caller tries it again.
		}
	}
	return errs
}

// portables returns the commands as ones that can be forwarded, nil if not all can.
func portables(cmds []ranges.Command) (out []ranges.Portable) {
	for _, c := range cmds {
		p, ok := c.(ranges.Portable)
		if !ok {
			return nil
		}
		out = append(out, p)
	}
	return out
}

// allBody is the body of submitAllMethod, allAnswer that of its answer.
type (
	allBody struct {
		Range    geo.RangeID `json:"range"`
		Commands []allOne    `json:"commands"`
	}
	allOne struct {
		Kind string `json:"kind"`
		Body []byte `json:"body,omitempty"`
	}
	allAnswer struct {
		Result []byte `json:"result,omitempty"`
		// Code is a key of allErrors, or allFailed; empty after a success.
		Code string `json:"code,omitempty"`
		Text string `json:"text,omitempty"`
	}
)

// allFailed is the code of errors that lose their identity.
const allFailed = "failed"

// allErrors are the errors that keep their identity. The codes are on the wire.
var allErrors = map[string]error{ //nolint:gochecknoglobals // A table.
	"busy": kv.ErrBusy, "unknown": kv.ErrUnknown, "not-leader": ranges.ErrNotLeader,
}

func allAnswerOf(result []byte, err error) allAnswer {
	if err == nil {
		return allAnswer{Result: result}
	}
	for code, e := range allErrors {
		if errors.Is(err, e) {
			return allAnswer{Code: code}
		}
	}
	return allAnswer{Code: allFailed, Text: err.Error()}
}

// forwardAll sends commands to the node that leads: see forward.
func (s *Stamp) forwardAll(ctx context.Context, calls node.CallTransport, id geo.RangeID, cmds []ranges.Portable) ([]error, error) {
	to, ok := s.LeaderNode(id)
	if !ok || s.Node(to) != nil {
		return nil, ranges.ErrNotLeader
	}
	in := allBody{Range: id}
	for _, c := range cmds {
		in.Commands = append(in.Commands, allOne{c.Kind(), c.Encode()})
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	out, err := ask[[]allAnswer](ctx, s, to, submitAllMethod, in)
	if errors.Is(err, node.ErrUnreachable) {
		return nil, ranges.ErrNotLeader
	}
	if err == nil && len(out) != len(cmds) {
		err = fmt.Errorf("%d results of %d commands from node %d: %w", len(out), len(cmds), to, kv.ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(cmds))
	for i, a := range out {
		switch known := allErrors[a.Code]; {
		case known != nil:
			errs[i] = known
		case a.Code != "":
			errs[i] = errors.New(a.Text)
		default:
			if err := cmds[i].DecodeResult(a.Result); err != nil {
				errs[i] = fmt.Errorf("result of %s from node %d: %w: %w", cmds[i].Kind(), to, kv.ErrUnknown, err)
			}
		}
	}
	return errs, nil
}

// answerSubmitAll answers submitAllMethod at a node.
func (s *Stamp) answerSubmitAll(id geo.NodeID) node.CallHandler {
	return answering(s, id, func(ctx context.Context, n *node.Node, in allBody) ([]allAnswer, error) {
		if len(in.Commands) > SubmitAllMax {
			return nil, fmt.Errorf("%d commands at once, at most %d", len(in.Commands), SubmitAllMax)
		}
		r := n.Range(in.Range)
		if r == nil {
			return nil, ranges.ErrNotLeader
		}
		cmds := make([]ranges.Command, len(in.Commands))
		for i, c := range in.Commands {
			decode := s.o.Commands[c.Kind]
			if decode == nil {
				return nil, fmt.Errorf("node %d does not know commands of kind %q", id, c.Kind)
			}
			cmd, err := decode(c.Body)
			if err != nil {
				return nil, fmt.Errorf("command %s: %w", c.Kind, err)
			}
			cmds[i] = cmd
		}
		out := make([]allAnswer, len(cmds))
		for i, err := range r.DoAll(ctx, cmds) {
			var result []byte
			if p, ok := cmds[i].(ranges.Portable); ok && err == nil {
				result = p.EncodeResult()
			}
			out[i] = allAnswerOf(result, err)
		}
		return out, nil
	})
}
