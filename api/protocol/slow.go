package protocol

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"antipode/internal/clock"
	"antipode/services/storageerr"
)

// What a client that sends or takes slowly may hold, beside the time of its request.
// The service's own limits are not published.
const (
	// SenderStallMax is how long a body may bring no byte, and how far it may fall behind
	// senderBytesPerSecond.
	SenderStallMax = 30 * time.Second
	// senderBytesPerSecond is what a sender must bring.
	senderBytesPerSecond = 16 << 10
	// ReceiverStallMax is how long a part of a long answer may wait to be taken, and how far
	// an answer may fall behind receiverBytesPerSecond.
	ReceiverStallMax = 2 * time.Minute
	// receiverBytesPerSecond is what a receiver must take of an answer that is held whole.
	receiverBytesPerSecond = 16 << 10
	// answerStallMax is how long an answer of a few bytes may wait to be taken.
	answerStallMax = 30 * time.Second
	// AnswerMax is how long a request may take to the end of its answer, unless it says
	// otherwise: the WriteTimeout of a front end.
	AnswerMax = 10 * time.Minute
	// lingerMax and lingerBytesMax bound what is still taken of a refused body.
	lingerMax      = 2 * time.Second
	lingerBytesMax = 16 << 20
)

// errPressed ends a slow sender while others wait for the memory it holds.
var errPressed = storageerr.ServerBusy.Saying("The request was sent too slowly for a server that is short of memory. Please retry your request.")

// WatchSender bounds the time that r's body may take, in addition to r's context: the sender
// must keep up senderBytesPerSecond and may fall SenderStallMax behind. Only the time in which
// the server waits for a byte counts. A read of a body that is too slow returns
// os.ErrDeadlineExceeded. If the request is watched already, only its deadline is replaced by
// that of the context, and begun is false: Linger is for the caller that began to watch.
func WatchSender(w http.ResponseWriter, r *http.Request) (begun bool) {
	if r.ContentLength == 0 {
		return false
	}
	end, bounded := r.Context().Deadline()
	if b := watchedSender(r); b != nil {
		b.mu.Lock()
		b.end, b.bounded = end, bounded
		b.mu.Unlock()
		return false
	}
	r.Body = &watchedBody{
		body: r.Body, control: http.NewResponseController(w), end: end, bounded: bounded,
		allowance: SenderStallMax, pace: newPace(),
	}
	return true
}

type watchedBody struct {
	control  *http.ResponseController
	received atomic.Int64
	stopped  atomic.Bool
	pressed  atomic.Bool // stopped by breakOff

	mu      sync.Mutex // held while the body is read
	body    io.Reader
	end     time.Time
	bounded bool
	read    bool // to its end
	// interrupted reports that stop cut a read off. net/http begins to watch the connection
	// within the read that reaches the end of the body; if stop's deadline fails that, the
	// context of the connection ends, and with it every later request of the connection.
	interrupted bool

	// allowance is how long the next byte may be waited for: SenderStallMax, less what was
	// waited for earlier bytes beyond the time they may take. Guarded by mu.
	allowance time.Duration
	pace      pace
}

// Read implements io.Reader. Sockets live in the machine's time.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped.Load() {
		return 0, b.stopError()
	}
	deadline := b.begin()
	if b.bounded && b.end.Before(deadline) {
		deadline = b.end
	}
	_ = b.control.SetReadDeadline(deadline) // A connection without one is a test's.
	if b.stopped.Load() {
		return 0, b.stopError() // Stopped since: its deadline was overwritten.
	}
	n, err := b.body.Read(p)
	b.received.Add(int64(n))
	b.took(n)
	switch {
	case errors.Is(err, io.EOF):
		// What net/http reads behind the body, to notice a client that has gone, is no
		// part of it. After any other error the deadline stays: nothing more is awaited.
		b.read = true
		_ = b.control.SetReadDeadline(time.Time{})
	case err != nil && b.stopped.Load():
		err = b.stopError()
	}
	return n, err
}

func (b *watchedBody) stopError() error {
	if b.pressed.Load() {
		return errPressed
	}
	return os.ErrDeadlineExceeded
}

// begin records that a read begins, and returns when it must have brought a byte.
func (b *watchedBody) begin() time.Time { return b.pace.begin().Add(b.allowance) }

// took records what a read brought.
func (b *watchedBody) took(n int) {
	b.allowance = min(SenderStallMax, b.allowance-b.pace.took(n)+time.Duration(n)*time.Second/senderBytesPerSecond)
}

func (b *watchedBody) rate() float64 { return b.pace.rate() }

// Close does nothing: net/http closes its body, which reads on, once the
// answer is out.
func (*watchedBody) Close() error { return nil }

// stop ends a read under way and refuses those to come. read reports that the body came
// to its end. Where it interrupted a read the request's context may be cancelled, and the
// connection takes no other request.
func (b *watchedBody) stop() (read bool) {
	b.stopped.Store(true)
	if !b.mu.TryLock() {
		_ = b.control.SetReadDeadline(time.Unix(1, 0))
		b.mu.Lock()
		b.interrupted = true
		if b.read {
			_ = b.control.SetReadDeadline(time.Time{})
		}
	}
	defer b.mu.Unlock()
	return b.read
}

// breakOff lets the reader fail with errPressed, now or at its next read.
func (b *watchedBody) breakOff() {
	b.pressed.Store(true)
	b.stop()
}

// StopSender ends all reads of r's body, which WatchSender watches: a transport may go
// on reading what it forwards after the answer came, and the connection may be another
// request's by then. read reports that the body came to its end. r's context may be cancelled
// by it.
func StopSender(r *http.Request) (read bool) {
	if watched := watchedSender(r); watched != nil {
		return watched.stop()
	}
	return r.ContentLength == 0
}

// Received is how many bytes of r's body were read, which WatchSender watches.
func Received(r *http.Request) int64 {
	if watched := watchedSender(r); watched != nil {
		return watched.received.Load()
	}
	return 0
}

// TakeBody reads the body of a request to its end and drops it, at most bytesMax bytes: an
// operation that has no use for a body is not begun before it came, or it would be done
// while its answer waits for a sender. The connection can then serve the next request, and
// net/http notices when the client leaves.
func TakeBody(r *http.Request, bytesMax int64) error {
	if r.ContentLength == 0 {
		return nil
	}
	tooLarge := storageerr.RequestBodyTooLarge.With("MaxLimit", strconv.FormatInt(bytesMax, 10))
	if r.ContentLength > bytesMax {
		return tooLarge
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r.Body, bytesMax+1))
	switch {
	case n > bytesMax:
		return tooLarge
	case err == nil:
		return nil
	}
	return BodyError(err)
}

// BeforeAnswer prepares the connection for an answer whose header is about to be written.
// net/http reads on in a body that was not read to its end before it writes the header,
// however long that takes, unless the connection ends with this answer: so it does. What
// is still read after the answer is bounded by lingerMax. The client has time to take the
// answer by its length.
func BeforeAnswer(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && !reusable(r) {
		w.Header()["Connection"] = []string{"close"}
		_ = http.NewResponseController(w).SetReadDeadline(clock.System{}.Now().Add(lingerMax)) // As above.
	}
	within := ReceiverStallMax
	length, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64)
	if err == nil && (r.Method == http.MethodHead || length >= 0) {
		within = answerStallMax
		if r.Method != http.MethodHead {
			within += time.Duration(min(length/receiverBytesPerSecond, int64(AnswerMax/time.Second))) * time.Second
		}
	}
	AnswerWithin(w, within)
}

// reusable reports whether r's connection can take another request: the body came to its
// end, and no read was interrupted. One that is being read has not come to its end.
func reusable(r *http.Request) bool {
	b := watchedSender(r)
	if b == nil || !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return b.read && !b.interrupted
}

// Linger takes what the client of a request that was answered early still sends: one
// that sends all of its body before it reads would otherwise see a reset and no answer.
// It ends the answer. The request is watched (WatchSender), and w must have announced that
// it closes the connection, which BeforeAnswer does. What the request counted for must have been given back.
func Linger(w http.ResponseWriter, r *http.Request) {
	watched := watchedSender(r)
	if watched == nil || watched.stop() {
		return
	}
	if r.Header.Get("Expect") != "" {
		return // Nothing comes.
	}
	control := http.NewResponseController(w)
	if control.Flush() == nil && control.SetReadDeadline(clock.System{}.Now().Add(lingerMax)) == nil {
		if answered, ok := r.Context().Value(answeredKey{}).(func()); ok {
			answered()
		}
		n, _ := io.CopyN(io.Discard, watched.body, lingerBytesMax) // It ends as it will.
		watched.received.Add(n)
	}
}

type answeredKey struct{}

// OnAnswered returns the context of a connection with a function that Linger calls when the answer is out: from then on the
// connection serves nothing, and may be closed for the sake of another.
func OnAnswered(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, answeredKey{}, f)
}

// AnswerWithin gives the client d from now to take the answer, in place of the
// server's WriteTimeout.
func AnswerWithin(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(clock.System{}.Now().Add(d)) // As above.
}

// PatientWriter writes a long answer: all of it may take as long as it takes at
// receiverBytesPerSecond, and the client may fall ReceiverStallMax behind.
type PatientWriter struct {
	W http.ResponseWriter
	// behind is how much of ReceiverStallMax was used up.
	behind time.Duration
}

// Write implements io.Writer.
func (p *PatientWriter) Write(part []byte) (int, error) {
	begun := clock.System{}.Now()
	_ = http.NewResponseController(p.W).SetWriteDeadline(begun.Add(ReceiverStallMax - p.behind)) // As above.
	n, err := p.W.Write(part)
	took := clock.System{}.Now().Sub(begun)
	p.behind = max(0, p.behind+took-time.Duration(n)*time.Second/receiverBytesPerSecond)
	return n, err
}
