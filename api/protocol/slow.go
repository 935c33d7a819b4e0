package protocol

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"antipode/internal/clock"
)

// What a client that sends or takes slowly may hold, beside the time of its request.
// The service's own limits are not published.
const (
	// SenderStallMax is how long a body may bring no byte.
	SenderStallMax = 30 * time.Second
	// ReceiverStallMax is how long a part of a long answer may wait to be taken.
	ReceiverStallMax = 2 * time.Minute
	// AnswerMax is how long a request may take to the end of its answer, unless it says
	// otherwise: the WriteTimeout of a front end.
	AnswerMax = 10 * time.Minute
	// lingerMax and lingerBytesMax bound what is still taken of a refused body.
	lingerMax      = 2 * time.Second
	lingerBytesMax = 16 << 20
)

// WatchSender bounds every read of r's body by SenderStallMax and by the end of r's
// context. What was too slow is os.ErrDeadlineExceeded to who reads.
func WatchSender(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	end, bounded := r.Context().Deadline()
	r.Body = &watchedBody{body: r.Body, control: http.NewResponseController(w), end: end, bounded: bounded}
}

type watchedBody struct {
	control *http.ResponseController
	end     time.Time
	bounded bool
	stopped atomic.Bool

	mu   sync.Mutex // held while the body is read
	body io.Reader
	read bool // to its end
}

// Read implements io.Reader. Sockets live in the machine's time.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	deadline := clock.System{}.Now().Add(SenderStallMax)
	if b.bounded && b.end.Before(deadline) {
		deadline = b.end
	}
	_ = b.control.SetReadDeadline(deadline) // A connection without one is a test's.
	if b.stopped.Load() {
		return 0, os.ErrDeadlineExceeded // Stopped since: its deadline was overwritten.
	}
	n, err := b.body.Read(p)
	if errors.Is(err, io.EOF) {
		// What net/http reads behind the body, to notice a client that has gone, is no
		// part of it. After any other error the deadline stays: nothing more is awaited.
		b.read = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Close does nothing: net/http closes the body of its own, which reads on, once the
// answer is out.
func (*watchedBody) Close() error { return nil }

// stop ends a read under way and refuses those to come. read says that the body came
// to its end.
func (b *watchedBody) stop() (read bool) {
	b.stopped.Store(true)
	if !b.mu.TryLock() {
		_ = b.control.SetReadDeadline(time.Unix(1, 0))
		b.mu.Lock()
		if b.read {
			_ = b.control.SetReadDeadline(time.Time{})
		}
	}
	defer b.mu.Unlock()
	return b.read
}

// StopSender ends all reads of r's body, which WatchSender watches: a transport may go
// on reading what it forwards after the answer came, and the connection may be another
// request's by then.
func StopSender(r *http.Request) {
	if watched, ok := r.Body.(*watchedBody); ok {
		watched.stop()
	}
}

// Linger takes what the client of a request that was answered early still sends: one
// that sends all of its body before it reads would otherwise see a reset and no answer.
// It ends the answer. w must have announced that it closes the connection.
func Linger(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if watched, ok := body.(*watchedBody); ok {
		if watched.stop() {
			return
		}
		body = watched.body
	}
	if r.ContentLength == 0 || r.Header.Get("Expect") != "" {
		return // Nothing comes.
	}
	control := http.NewResponseController(w)
	if control.Flush() == nil && control.SetReadDeadline(clock.System{}.Now().Add(lingerMax)) == nil {
		_, _ = io.CopyN(io.Discard, body, lingerBytesMax) // It ends as it will.
	}
}

// AnswerWithin gives the client d from now to take the answer, in place of the
// server's WriteTimeout.
func AnswerWithin(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(clock.System{}.Now().Add(d)) // As above.
}

// PatientWriter writes a long answer: each part may take ReceiverStallMax, and all of
// them as long as they take.
type PatientWriter struct{ W http.ResponseWriter }

// Write implements io.Writer.
func (p PatientWriter) Write(part []byte) (int, error) {
	AnswerWithin(p.W, ReceiverStallMax)
	return p.W.Write(part)
}
