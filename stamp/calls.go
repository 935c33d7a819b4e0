package stamp

import (
	"context"
	"encoding/json"

	"antipode/geo"
	"antipode/stamp/node"
)

// answers are the calls that a node answers.
func (s *Stamp) answers(id geo.NodeID) map[string]node.CallHandler {
	return map[string]node.CallHandler{
		submitMethod: s.submitted(id), hasChunkMethod: s.hasChunk(id), progressMethod: s.tellProgress(id),
		surveyMethod: s.tellSurvey(id), reformMethod: s.takeReform(id),
	}
}

// ask puts a question in JSON to a node, which may run here, and reads its answer.
func ask[T any](ctx context.Context, s *Stamp, to geo.NodeID, method string, question any) (out T, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return out, err
	}
	var answer []byte
	if s.Node(to) != nil {
		answer, err = s.answers(to)[method](ctx, body)
	} else if calls, ok := s.o.Transport.(node.CallTransport); ok {
		answer, err = calls.Call(ctx, s.self(), to, method, body)
	} else {
		err = node.ErrUnreachable
	}
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(answer, &out)
}

// answering makes a handler of a call in JSON at a node.
func answering[Q, A any](s *Stamp, id geo.NodeID, f func(context.Context, *node.Node, Q) (A, error)) node.CallHandler {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		var q Q
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		n := s.Node(id)
		if n == nil {
			return nil, node.ErrUnreachable
		}
		a, err := f(ctx, n, q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(a)
	}
}
