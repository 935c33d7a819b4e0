package protocol

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Room is what Documents may hold: an InFlight of answers.
type Room interface {
	Admit(ctx context.Context, n int64) (held int64, err error)
	TryAdmit(n int64) (held int64, ok bool)
	Release(held int64)
}

const (
	// WindowBytes is what a document grows by.
	WindowBytes = 64 << 10
	// takenPerSecond is the slowest that a client may take a document, after answerGrace.
	takenPerSecond = 16 << 10
	answerGrace    = 30 * time.Second
)

// Windows makes documents, whose memory they use again. Methods may be called
// concurrently. The zero value is ready.
type Windows struct{ pool sync.Pool } // of *[]byte, each of WindowBytes

// Document is an answer's body under way, made of windows that never move. It is one
// request's, and not safe for concurrent use.
//
// A page of a listing must be known to its end before its first byte goes out, since the
// continuation is a header. So a page that finds no more room ends where it is: pages
// become short before a request waits, and only one that has nothing to show yet waits.
// Nobody waits for room while holding some, so that two can never wait for each other.
type Document struct {
	windows *Windows
	room    Room
	extra   int64 // what the request holds besides windows
	full    []window
	current window
	size    int // of full
}

// window is a part of a document. held is what the room counts for it.
type window struct {
	b    []byte
	held int64
}

// Document waits until a document may begin: with a first window of n bytes, and extra
// bytes that the request holds besides. What is larger than the room takes all of it.
// ServerBusy where ctx ends before. Close it.
func (s *Windows) Document(ctx context.Context, room Room, n, extra int) (*Document, error) {
	held, err := room.Admit(ctx, int64(n)+int64(extra))
	if err != nil {
		return nil, err
	}
	first := min(held, int64(n))
	return &Document{windows: s, room: room, extra: held - first, current: s.window(n, first)}, nil
}

func (s *Windows) window(n int, held int64) window {
	if n != WindowBytes {
		return window{make([]byte, 0, n), held}
	}
	if b, pooled := s.pool.Get().(*[]byte); pooled {
		return window{(*b)[:0], held}
	}
	return window{make([]byte, 0, WindowBytes), held}
}

// Len is the length of the document in bytes.
func (d *Document) Len() int { return d.size + len(d.current.b) }

// Fits reports whether n more bytes fit in the window at hand.
func (d *Document) Fits(n int) bool { return cap(d.current.b)-len(d.current.b) >= n }

// Grow makes room for n bytes at once, in a new window where they do not fit. It never
// waits: it reports false where there is no room.
func (d *Document) Grow(n int) bool {
	if d.Fits(n) {
		return true
	}
	n = max(n, WindowBytes)
	held, ok := d.room.TryAdmit(int64(n))
	if ok {
		d.full, d.size = append(d.full, d.current), d.Len()
		d.current = d.windows.window(n, held)
	}
	return ok
}

// Append lets f append to the document, at most what Grow made room for.
func (d *Document) Append(f func(dst []byte) []byte) { d.current.b = f(d.current.b) }

// WriteTo writes the document as the body of an answer whose headers are set, and gives
// back what it held as far as the client has taken it. A client that takes it more slowly
// than takenPerSecond loses the connection.
func (d *Document) WriteTo(w http.ResponseWriter) {
	AnswerDocument(w, d.Len())
	d.full = append(d.full, d.current)
	d.current = window{}
	for len(d.full) > 0 {
		if _, err := w.Write(d.full[0].b); err != nil {
			break // The client is gone.
		}
		d.release(d.full[0])
		d.full = d.full[1:]
	}
}

// AnswerDocument gives the client the time from now on that it has to take a document of n bytes.
func AnswerDocument(w http.ResponseWriter, n int) {
	AnswerWithin(w, answerGrace+time.Duration(n/takenPerSecond)*time.Second)
}

// AppendTo appends the document to dst. It holds what it held.
func (d *Document) AppendTo(dst []byte) []byte {
	for _, w := range d.full {
		dst = append(dst, w.b...)
	}
	return append(dst, d.current.b...)
}

// Close gives back what the document still holds. A second call does nothing.
func (d *Document) Close() {
	for _, w := range append(d.full, d.current) {
		d.release(w)
	}
	d.room.Release(d.extra)
	d.full, d.current, d.extra = nil, window{}, 0
}

func (d *Document) release(w window) {
	if cap(w.b) == WindowBytes {
		d.windows.pool.Put(&w.b)
	}
	d.room.Release(w.held)
}
