package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/labstack/echo/v4"

	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/internal/outbound"
	"antipode/services/storageerr"
)

// sourceHeader is what a read of a source takes of the header of r: which part is read, and under which conditions.
func sourceHeader(r *http.Request, version string) http.Header {
	h := http.Header{protocol.HeaderVersion: {version}}
	for _, name := range [...]string{
		"Range", "X-Ms-Range", "X-Ms-Range-Get-Content-Md5", "X-Ms-Range-Get-Content-Crc64", "If-Match", "If-None-Match", "If-Modified-Since",
		"If-Unmodified-Since", "X-Ms-If-Tags", protocol.HeaderVersion,
	} {
		if values, sent := r.Header[name]; sent {
			h[name] = values
		}
	}
	return h
}

// outsideError is the error of a read from another server.
func outsideError(err error) error {
	refused := func(status int, message string) error { return storageerr.CopySourceRefused(status, "", message) }
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, outbound.ErrNotListed):
		return errUnlisted
	case errors.Is(err, outbound.ErrAddress):
		return refused(http.StatusForbidden, "The host of the copy source has no address that copies may read from. "+
			"Operators permit private ones in copy_sources of node.yaml.")
	case errors.Is(err, outbound.ErrRedirect):
		return refused(http.StatusForbidden, "The copy source is answered with a redirect, which is not followed.")
	case errors.Is(err, outbound.ErrBusy):
		return refused(http.StatusServiceUnavailable, "As many copies from other servers are under way as there may be. Please retry your request.")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refused(http.StatusInternalServerError, "The server of the copy source did not answer in time.")
	}
	return refused(http.StatusInternalServerError, "The server of the copy source could not be reached.")
}

// ask has this front end answer a read of the source, as it answers a client: so the read goes to whatever location and node
// have it.
func (x *exchange) ask(of *http.Request, byKey bool) (*http.Response, error) {
	if of.Method != http.MethodGet && of.Method != http.MethodHead {
		return nil, fmt.Errorf("method %s reads no source", of.Method)
	}
	ctx, cancel := context.WithCancel(of.Context())
	r := x.r.Clone(ctx)
	r.Method, r.Header = of.Method, sourceHeader(of, x.r.Header.Get(protocol.HeaderVersion))
	if byKey {
		if err := x.sign(r, x.req.Account.Key1); err != nil {
			cancel()
			return nil, err
		}
	}
	routing.Inside(r.Header, x.req.ClientAddr, x.req.Scheme)
	req := &protocol.Request{HTTP: r, ClientAddr: x.req.ClientAddr, Scheme: x.req.Scheme, ID: x.o.IDs.Next()}
	return x.answerInside(ctx, cancel, req)
}

// answerInside answers a request of this process, which no connection carries, until its context ends. cancel ends that.
func (s *Server) answerInside(ctx context.Context, cancel context.CancelFunc, req *protocol.Request) (*http.Response, error) {
	out, in := io.Pipe()
	a := &insideAnswer{header: http.Header{}, body: in, begun: make(chan struct{}), head: req.HTTP.Method == http.MethodHead}
	ended := make(chan struct{})
	unblock := context.AfterFunc(ctx, func() { _ = in.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer close(ended)
		err := s.runInside(a, req)
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		a.end(err)
	}()
	body := &insideBody{PipeReader: out, stop: func() {
		cancel()
		unblock()
		_ = out.Close()
		<-ended
	}}
	select {
	case <-a.begun:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		body.stop()
		return nil, err
	}
	if a.err != nil {
		body.stop()
		return nil, refusedSource(storageerr.ServerBusy.Saying("The location that serves the copy source broke its answer off. Please retry your request."))
	}
	return &http.Response{
		Status: fmt.Sprint(a.status, " ", http.StatusText(a.status)), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: body, ContentLength: a.length(), Request: req.HTTP,
	}, nil
}

// runInside lets the server take the request. The error is that of an answer that breaks off.
func (s *Server) runInside(a *insideAnswer, req *protocol.Request) (err error) {
	defer func() {
		if p := recover(); p != nil { // http.ErrAbortHandler: take has logged any other one.
			err = io.ErrUnexpectedEOF
		}
	}()
	s.take(echo.NewResponse(a, nil), req, geo.Blob, true, s.sources)
	return nil
}

// insideAnswer is the answer to a request of this process: nothing of its body is in memory but what is being written.
type insideAnswer struct {
	header http.Header
	body   *io.PipeWriter
	// begun is closed when the fields below are set. wrote is the handler's.
	begun  chan struct{}
	status int
	sent   http.Header
	err    error
	wrote  int64
	// head: the answer has no body, whatever its header says.
	head bool
}

// Header implements http.ResponseWriter.
func (a *insideAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. Only the first call has an effect.
func (a *insideAnswer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status, a.sent = status, http.Header{}
	for name, values := range a.header { // In the form of net/http's client.
		if len(values) > 0 {
			a.sent[http.CanonicalHeaderKey(name)] = values
		}
	}
	close(a.begun)
}

// Write implements http.ResponseWriter. It returns when the reader has taken all.
func (a *insideAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	n, err := a.body.Write(p)
	a.wrote += int64(n)
	return n, err
}

// length is that of the body; -1 where the header does not have it.
func (a *insideAnswer) length() int64 {
	n, err := strconv.ParseInt(a.sent.Get("Content-Length"), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// end ends the answer, with the error of one that broke off.
func (a *insideAnswer) end(err error) {
	if err == nil && !a.head && a.status != 0 && a.length() > a.wrote {
		err = io.ErrUnexpectedEOF
	}
	if a.status == 0 && err != nil {
		a.err, a.status = err, http.StatusInternalServerError
		close(a.begun)
	}
	a.WriteHeader(http.StatusOK)
	_ = a.body.CloseWithError(err)
}

// insideBody is the body of an answer to a request of this process.
type insideBody struct {
	*io.PipeReader
	stop func()
}

// Close ends the request, and waits for that.
func (b *insideBody) Close() error {
	b.stop()
	return nil
}
