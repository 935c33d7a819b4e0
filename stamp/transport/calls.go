package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"antipode/geo"
	"antipode/stamp/fetch"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/transport/wire"
)

// handlers answer calls by method.
type handlers struct {
	// room counts the bytes of requests that are here.
	room *semaphore.Weighted

	mu       sync.RWMutex
	byMethod map[string]node.CallHandler
}

func newHandlers(bytesMax int64) *handlers {
	return &handlers{room: semaphore.NewWeighted(bytesMax), byMethod: map[string]node.CallHandler{}}
}

func (h *handlers) set(method string, f node.CallHandler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f == nil {
		delete(h.byMethod, method)
		return
	}
	h.byMethod[method] = f
}

func (h *handlers) of(method string) node.CallHandler {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.byMethod[method]
}

// Handle implements node.CallTransport. id must be the transport's own.
func (t *Transport) Handle(id geo.NodeID, method string, f node.CallHandler) {
	if id != t.o.Self {
		panic(fmt.Sprintf("transport of node %d: method %s of node %d", t.o.Self, method, id))
	}
	t.calls.set(method, f)
}

// Call implements node.CallTransport. A node whose stream does not stand is not
// reachable.
func (t *Transport) Call(ctx context.Context, _, to geo.NodeID, method string, body []byte) ([]byte, error) {
	p := t.peers[to]
	if p == nil || !p.queue.stats().Connected {
		return nil, fmt.Errorf("node %d: %s: %w", to, method, node.ErrUnreachable)
	}
	answer, err := t.ask(ctx, wire.NewStampClient(p.calls).Call, method, body)
	if err != nil {
		return nil, fmt.Errorf("node %d: %s: %w", to, method, err)
	}
	return answer, nil
}

// callStream is a call at its caller.
type callStream = grpc.ClientStreamingClient[wire.CallPart, wire.CallAnswer]

// ask makes one call. The callee acts when it has the last part: until that is sent, what
// breaks has done nothing.
func (t *Transport) ask(
	ctx context.Context, open func(context.Context, ...grpc.CallOption) (callStream, error), method string, body []byte,
	options ...grpc.CallOption,
) ([]byte, error) {
	if len(body) > node.CallBytesMax {
		return nil, fmt.Errorf("request has %d bytes, at most %d can travel", len(body), node.CallBytesMax)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slow := time.AfterFunc(t.o.OpenTimeout, cancel)
	stream, err := open(ctx, options...)
	slow.Stop()
	if err == nil {
		first := &wire.CallPart{Method: method, Length: uint32(len(body))}
		last := first
		if len(body) > 0 {
			err = stream.SendMsg(first)
			last = &wire.CallPart{Data: body}
		}
		if err == nil {
			// gRPC may have sent it whatever it says from here on.
			if err = stream.SendMsg(last); err != nil && !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("%w: %w", kv.ErrUnknown, spoken{err})
			}
			return await(stream)
		}
	}
	if errors.Is(err, io.EOF) {
		_, err = stream.CloseAndRecv() // Why the peer ended it.
	}
	return nil, fmt.Errorf("%w: %w", node.ErrUnreachable, spoken{err})
}

// spoken is an error of gRPC without the words around it that do not say what happened.
type spoken struct{ error }

func (e spoken) Unwrap() error { return e.error }

func (e spoken) Error() string {
	text := status.Convert(e.error).Message()
	for _, around := range []string{`desc = "transport: `, "Error while dialing: "} {
		if _, what, cut := strings.Cut(text, around); cut {
			text = strings.TrimSuffix(what, `"`)
		}
	}
	return text
}

// await waits for the answer.
func await(stream callStream) ([]byte, error) {
	answer, err := stream.CloseAndRecv()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kv.ErrUnknown, spoken{err})
	}
	if code := answer.GetError(); code != wire.CallError_NONE {
		return nil, fromAnswer(code, answer.GetText(), geo.NodeID(answer.GetElsewhere()))
	}
	return answer.GetData(), nil
}

// Call implements wire.StampServer.
func (s *service) Call(stream grpc.ClientStreamingServer[wire.CallPart, wire.CallAnswer]) error {
	if s.t.attachment() == nil {
		return answer(stream, s.t.stoppedCalls)
	}
	return answer(stream, s.t.calls)
}

// CallPair implements wire.StampServer.
func (s *service) CallPair(stream grpc.ClientStreamingServer[wire.CallPart, wire.CallAnswer]) error {
	return answer(stream, s.t.pairCalls)
}

// nobody is what a process answers to a method that it does not know. It is on the wire: never change it.
const nobody = "nobody answers such calls here"

// refuse answers that nobody takes calls here.
func refuse(stream grpc.ClientStreamingServer[wire.CallPart, wire.CallAnswer]) error {
	return stream.SendAndClose(&wire.CallAnswer{Error: wire.CallError_NOBODY, Text: nobody})
}

// answer takes one call and answers it.
func answer(stream grpc.ClientStreamingServer[wire.CallPart, wire.CallAnswer], h *handlers) error {
	var in wire.CallPart
	if err := stream.RecvMsg(&in); err != nil {
		return err
	}
	f := h.of(in.GetMethod())
	if f == nil {
		return refuse(stream)
	}
	body, length := in.GetData(), int64(in.GetLength())
	if length > 0 {
		if length > node.CallBytesMax {
			return toStatus(fmt.Errorf("%w: request of %d bytes", ErrFrame, length))
		}
		if err := h.room.Acquire(stream.Context(), length); err != nil {
			return status.FromContextError(err).Err()
		}
		defer h.room.Release(length)
		var rest wire.CallPart
		if err := stream.RecvMsg(&rest); err != nil {
			return err
		}
		body = rest.GetData()
	}
	if int64(len(body)) != length {
		return toStatus(fmt.Errorf("%w: request of %d bytes, announced were %d", ErrFrame, len(body), length))
	}
	data, err := f(stream.Context(), body)
	if err == nil && len(data) > node.CallBytesMax {
		err = fmt.Errorf("answer has %d bytes, at most %d can travel", len(data), node.CallBytesMax)
	}
	if err != nil {
		return stream.SendAndClose(toAnswer(err))
	}
	return stream.SendAndClose(&wire.CallAnswer{Data: data})
}

// callErrors are the errors of handlers that keep their identity over the wire.
var callErrors = [...]struct { //nolint:gochecknoglobals // A table, never written.
	err  error
	code wire.CallError
}{
	{kv.ErrBusy, wire.CallError_BUSY},
	{kv.ErrUnknown, wire.CallError_UNKNOWN},
	{ranges.ErrNotLeader, wire.CallError_NOT_LEADER},
	{node.ErrUnreachable, wire.CallError_NOBODY},
}

// toAnswer is what the caller gets of an error.
func toAnswer(err error) *wire.CallAnswer {
	out := &wire.CallAnswer{Error: wire.CallError_FAILED, Text: err.Error()}
	for _, e := range callErrors {
		if errors.Is(err, e.err) {
			out.Error = e.code
		}
	}
	var elsewhere *ElsewhereError
	if errors.As(err, &elsewhere) {
		out.Error, out.Elsewhere = wire.CallError_ELSEWHERE, uint64(elsewhere.Node)
	}
	return out
}

// fromAnswer is the inverse of toAnswer.
func fromAnswer(code wire.CallError, text string, elsewhere geo.NodeID) error {
	if code == wire.CallError_ELSEWHERE {
		return &ElsewhereError{elsewhere}
	}
	if code == wire.CallError_NOBODY && text == nobody {
		return &remoteError{text, fetch.ErrNoHandler}
	}
	for _, e := range callErrors {
		if code == e.code {
			return &remoteError{text, e.err}
		}
	}
	return errors.New(text)
}
