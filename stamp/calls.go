package stamp

import (
	"context"
	"encoding/json"

	"antipode/geo"
	"antipode/stamp/node"
)

// answers are the handlers of the calls that a node answers, by method.
func (s *Stamp) answers(id geo.NodeID) map[string]node.CallHandler {
	return map[string]node.CallHandler{
		submitMethod: s.answerSubmit(id), submitAllMethod: s.answerSubmitAll(id), hasChunkMethod: s.answerHasChunk(id), progressMethod: s.answerProgress(id),
		surveyMethod: s.answerSurvey(id), reformMethod: s.answerReform(id), confirmedMethod: s.answerConfirmed(id),
		missingChunksMethod: s.answerMissingChunks(id),
	}
}

// ask calls a method of a node, which may run here, with question and answer in JSON.
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

// answering returns a handler at a node that decodes the question from JSON, calls f and
// encodes its answer.
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
