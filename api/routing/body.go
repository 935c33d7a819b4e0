package routing

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"antipode/api/operation"
)

// unrepeatable is an empty body. net/http takes a GET without a body for one that it may
// send again by itself when a kept connection breaks; a GET with a body that it cannot
// rewind it does not. It finds this one empty before it writes the header.
type unrepeatable struct{}

// Read implements io.Reader.
func (unrepeatable) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (unrepeatable) Close() error { return nil }

// forwardedBody is a request's body on its way to one front end. It is taken with the first
// read, or withdrawn before: then no read reaches the body any more.
type forwardedBody struct {
	body     io.Reader
	state    atomic.Int32
	patience *patience
	// answered is set when the answer has begun: from then on the hop waits for the answer.
	answered atomic.Bool
	// broke is the error of a read: the end of the body was not sent.
	broke atomic.Pointer[error]
}

const (
	bodyUnread int32 = iota
	bodyTaken
	bodyEnded
	bodyWithdrawn
)

// Read implements io.Reader, for the transport.
func (b *forwardedBody) Read(p []byte) (int, error) {
	if !b.state.CompareAndSwap(bodyUnread, bodyTaken) {
		switch b.state.Load() {
		case bodyEnded:
			return 0, io.EOF
		case bodyWithdrawn:
			return 0, http.ErrBodyReadAfterClose
		}
	}
	if !b.answered.Load() {
		b.patience.pause() // The client takes the time that WatchSender gives it.
	}
	n, err := b.body.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		// A transport reads once more behind the end, and breaks the hop off at any other
		// error; net/http closes a body that was read when the answer begins.
		b.state.Store(bodyEnded)
	case err != nil:
		b.broke.Store(&err)
	}
	if !b.answered.Load() {
		b.patience.resume()
	}
	return n, err
}

// Close implements io.Closer: the body is net/http's own.
func (*forwardedBody) Close() error { return nil }

// withdraw reports whether the body is unread, and keeps it so.
func (b *forwardedBody) withdraw() bool { return b.state.CompareAndSwap(bodyUnread, bodyWithdrawn) }

// patienceMore is how much longer than a request may take a front end waits that has all it needs, before a hop that
// does nothing is given up: an end that was paused, or whose machine is gone, never answers.
const patienceMore = 5 * time.Second

// patience ends a hop whose other end does nothing. It is paused while the hop waits for
// the client.
type patience struct {
	max   time.Duration
	timer *time.Timer
	// over is set when the hop was ended.
	over atomic.Bool
}

func startPatience(long time.Duration, end func()) *patience {
	p := &patience{max: max(long, operation.RequestMax) + patienceMore}
	p.timer = time.AfterFunc(p.max, func() {
		p.over.Store(true)
		end()
	})
	return p
}

func (p *patience) pause()  { p.timer.Stop() }
func (p *patience) resume() { p.timer.Reset(p.max) }
