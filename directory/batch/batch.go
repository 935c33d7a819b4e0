package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/replication/link"
	"antipode/stamp/ranges"
)

// Steps of many accounts go on side by side, in one goroutine: each runs up to its next command or call, and waits there
// until all others have come to theirs. Then the commands of one range are submitted together, so that they have one group,
// and the calls of the other location travel in one. The steps are those of single accounts: two accounts never depend on
// each other, and what becomes of the command of one changes nothing for another.

const (
	// togetherMax is how many steps go on side by side.
	togetherMax = 500
	// callsBytesMax is how many bytes of calls travel in one, besides the last.
	callsBytesMax = 256 << 10
)

// Run runs f for each number below n: see above.
func Run(ctx context.Context, n int, f func(ctx context.Context, i int)) {
	if n == 1 || ctx.Value(sideKey{}) != nil {
		for i := range n {
			f(ctx, i)
		}
		return
	}
	for first := 0; first < n; first += togetherMax {
		sides := make([]func() (*request, bool), 0, togetherMax)
		for i := first; i < min(n, first+togetherMax); i++ {
			next, _ := iter.Pull(func(yield func(*request) bool) { f(context.WithValue(ctx, sideKey{}, side(yield)), i) })
			sides = append(sides, next)
		}
		for len(sides) > 0 {
			var asked []*request
			sides = slices.DeleteFunc(sides, func(next func() (*request, bool)) bool {
				r, more := next()
				if more {
					asked = append(asked, r)
				}
				return !more
			})
			answer(ctx, asked)
		}
	}
}

// sideKey is the key of a side in its context.
type sideKey struct{}

// side is one of several steps that go on side by side: it passes a request on, and returns once that is answered.
type side func(*request) bool

// asks has a request answered with those of the other sides; false if there are none.
func asks(ctx context.Context, r *request) bool {
	s, ok := ctx.Value(sideKey{}).(side)
	if ok {
		s(r)
	}
	return ok
}

// Do runs a function in its turn among the other sides, at once if there are none.
func Do(ctx context.Context, f func() error) error {
	if r := (&request{do: f}); asks(ctx, r) {
		return r.err
	}
	return f()
}

// Apart returns a context for what is done by itself, not with those of other sides.
func Apart(ctx context.Context) context.Context { return context.WithValue(ctx, sideKey{}, nil) }

// request is what a side waits for: a command, a call, or do.
type request struct {
	stamp  *Shared
	id     geo.RangeID
	cmd    ranges.Command
	caller *SharedCaller
	method string
	body   []byte
	do     func() error

	answer []byte
	err    error
}

// answer answers requests.
func answer(ctx context.Context, asked []*request) {
	for len(asked) > 0 {
		first := asked[0]
		var same, others []*request
		for _, r := range asked {
			if r == first || first.do == nil && r.stamp == first.stamp && r.id == first.id && r.caller == first.caller {
				same = append(same, r)
			} else {
				others = append(others, r)
			}
		}
		switch {
		case first.do != nil:
			first.err = first.do()
		case first.stamp != nil:
			first.stamp.submitAll(ctx, same)
		default:
			first.caller.callAll(ctx, same)
		}
		asked = others
	}
}

// Shared is a stamp that gets the commands of steps together.
type Shared struct{ record.Stamp }

// Submit implements ranges.Submitter.
func (s *Shared) Submit(ctx context.Context, id geo.RangeID, cmd ranges.Command) error {
	if r := (&request{stamp: s, id: id, cmd: cmd}); asks(ctx, r) {
		return r.err
	}
	return s.Stamp.Submit(ctx, id, cmd)
}

// Read implements ranges.Reader.
func (s *Shared) Read(ctx context.Context, id geo.RangeID, f func(ranges.State) error) error {
	if r := (&request{do: func() error { return s.Stamp.Read(ctx, id, f) }}); asks(ctx, r) {
		return r.err
	}
	return s.Stamp.Read(ctx, id, f)
}

// allSubmitter is a stamp that takes many commands of a range at once: see stamp.Stamp.SubmitAll.
type allSubmitter interface {
	SubmitAll(ctx context.Context, id geo.RangeID, cmds []ranges.Command) []error
}

// submitAll submits commands of one range, and answers their requests.
func (s *Shared) submitAll(ctx context.Context, asked []*request) {
	all, ok := s.Stamp.(allSubmitter)
	if !ok || len(asked) == 1 {
		for _, r := range asked {
			r.err = s.Stamp.Submit(ctx, r.id, r.cmd)
		}
		return
	}
	cmds := make([]ranges.Command, len(asked))
	for i, r := range asked {
		cmds[i] = r.cmd
	}
	for i, err := range all.SubmitAll(ctx, asked[0].id, cmds) {
		asked[i].err = err
	}
}

// SharedCaller is a caller that makes the calls of steps together.
type SharedCaller struct{ link.Caller }

// Call implements link.Caller.
func (c *SharedCaller) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	if r := (&request{caller: c, method: method, body: body}); asks(ctx, r) {
		return r.answer, r.err
	}
	return c.Caller.Call(ctx, method, body)
}

// callAll makes calls, and answers their requests.
func (c *SharedCaller) callAll(ctx context.Context, asked []*request) {
	for len(asked) > 0 {
		n, size := 0, 0
		for n < len(asked) && size < callsBytesMax {
			size += len(asked[n].body)
			n++
		}
		c.callSome(ctx, asked[:n])
		asked = asked[n:]
	}
}

// callSome makes calls in one. A location that does not know how gets them one by one: its program is an older one.
func (c *SharedCaller) callSome(ctx context.Context, asked []*request) {
	alone := func(r *request) { r.answer, r.err = c.Caller.Call(ctx, r.method, r.body) }
	first := asked[0]
	if len(asked) == 1 {
		alone(first)
		return
	}
	in := make([]callBody, len(asked))
	for i, r := range asked {
		in[i] = callBody{r.method, r.body}
	}
	body, err := json.Marshal(in)
	var b []byte
	if err == nil {
		b, err = c.Caller.Call(ctx, Method, body)
	}
	var out []callAnswer
	if err == nil {
		if err = json.Unmarshal(b, &out); err == nil && len(out) != len(asked) {
			err = fmt.Errorf("%s: %d answers to %d calls", Method, len(out), len(asked))
		}
	}
	if err == nil {
		for i, r := range asked {
			if r.answer = out[i].Body; out[i].Error != "" {
				r.err = errors.New(out[i].Error)
			}
		}
		return
	}
	alone(first)
	for _, r := range asked[1:] {
		if r.err = first.err; first.err == nil {
			alone(r)
		}
	}
}

// Method makes several calls in one. It is on the wire: never rename it.
const Method = "directory.Together"

// callBody is one of several calls on the wire, callAnswer is its answer.
type (
	callBody struct {
		Method string          `json:"method"`
		Body   json.RawMessage `json:"body"`
	}
	callAnswer struct {
		Body json.RawMessage `json:"body,omitempty"`
		// Error is empty after a success.
		Error string `json:"error,omitempty"`
	}
)

// Answer answers several calls, each by the handler of its method.
func Answer(ctx context.Context, body []byte, handlers map[string]func(context.Context, []byte) ([]byte, error)) ([]byte, error) {
	var in []callBody
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("%s: %w", Method, err)
	}
	out := make([]callAnswer, len(in))
	Run(ctx, len(in), func(ctx context.Context, i int) {
		f := handlers[in[i].Method]
		if f == nil {
			out[i].Error = fmt.Sprintf("no method %q", in[i].Method)
			return
		}
		b, err := f(ctx, in[i].Body)
		if out[i].Body = b; err != nil {
			out[i] = callAnswer{Error: err.Error()}
		}
	})
	return json.Marshal(out)
}
