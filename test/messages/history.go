package messages

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// The ways in which what was seen breaks a promise.
var (
	// ErrLost means that a message is gone which nobody has asked to delete (Q1).
	ErrLost = errors.New("acknowledged message lost")
	// ErrInvented means that a message was seen which nobody put, whose put was refused, or whose text is another one.
	ErrInvented = errors.New("message that nobody put")
	// ErrTwice means that a message was put twice though its put was answered.
	ErrTwice = errors.New("message put twice")
	// ErrHidden means that a message was got while another consumer had it hidden (Q2), or twice under one count (Q3).
	ErrHidden = errors.New("message got while it was hidden")
	// ErrReceipt means that a receipt has worked which was not the newest (Q4).
	ErrReceipt = errors.New("receipt has worked that is not the newest")
	// ErrDeleted means that a message was got after its deletion was acknowledged.
	ErrDeleted = errors.New("message got after its deletion")
	// ErrCount means that the count of a quiet queue is not that of its messages (Q6).
	ErrCount = errors.New("wrong count of messages")
)

// fate is what a client knows of a request.
type fate byte

const (
	unknown fate = iota
	acked
	refused
)

// hold is one get of a message: the consumer may count on it from before the answer until a time.
type hold struct {
	count       int
	sent, ended time.Time
	until       time.Time
	byWhom      int
}

// message is what is known of one message of a producer.
type message struct {
	key string
	put fate
	// putSent and putAt are when its put was sent and answered.
	putSent, putAt time.Time
	id             string
	holds          map[string][]*hold // by the id under which it was got
	asked          bool               // somebody has asked to delete it
	// deletions are when each deletion that was acknowledged was sent and answered: more than one only after a promotion.
	deletions [][2]time.Time
	left      bool // it was there at the end
}

// History is what producers and consumers of one queue did and saw. The zero value is empty. Methods may be called
// concurrently.
type History struct {
	// Padding is how long the text of every eighth message is at least.
	Padding int
	// Stepped: clocks of servers are set, so that a message may come back early or late by the step (Q9).
	Stepped bool

	mu       sync.Mutex
	messages map[string]*message // by key
	order    []*message
	strange  []error
	counted  int
	gets     int
	// lost and promoted are when the primary was lost, and when at the latest its successor took requests; zero if that
	// never happened. What was hidden or deleted before may be seen again.
	lost, promoted time.Time
}

// begin keeps a put that is about to be sent, and returns its key and text.
func (h *History) begin(producer int, sent time.Time) (key, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.messages == nil {
		h.messages = map[string]*message{}
	}
	key = fmt.Sprintf("m%06d-%d", len(h.order), producer)
	m := &message{key: key, putSent: sent, holds: map[string][]*hold{}}
	h.messages[key] = m
	h.order = append(h.order, m)
	return key, h.text(key, len(h.order)-1)
}

// text is what the n-th message says: each eighth has Padding more bytes.
func (h *History) text(key string, n int) string {
	if n%8 != 0 {
		return key
	}
	return key + "|" + strings.Repeat(key+" <&> ", h.Padding/len(key)+1)
}

func (h *History) putEnded(key string, f fate, id string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.messages[key]
	m.put, m.id, m.putAt = f, id, at
}

// got keeps a message in the answer to a get. It returns nil for one that nobody put.
func (h *History) got(id, text string, g hold) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gets++
	key, _, _ := strings.Cut(text, "|")
	m := h.messages[key]
	var n int
	if _, err := fmt.Sscanf(key, "m%06d-", &n); m == nil || err != nil || h.text(key, n) != text {
		h.strange = append(h.strange, fmt.Errorf("%w: %s: %.100q", ErrInvented, id, text))
		return nil
	}
	at := &g
	m.holds[id] = append(m.holds[id], at)
	return at
}

// hidden keeps that a consumer has asked for its message to be hidden until another time.
func (h *History) hidden(of *hold, f fate, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f == acked || f == unknown && until.Before(of.until) {
		of.until = until
	}
}

// stale keeps the answer to a deletion by a receipt that is not the newest.
func (h *History) stale(key string, f fate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f == acked {
		h.strange = append(h.strange, fmt.Errorf("%w: %s", ErrReceipt, key))
	}
}

func (h *History) deleteBegins(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.of(text); m != nil {
		m.asked = true
	}
}

func (h *History) deleteEnded(text string, f fate, sent, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.of(text); m != nil && f == acked {
		m.deletions = append(m.deletions, [2]time.Time{sent, at})
	}
}

func (h *History) of(text string) *message {
	key, _, _ := strings.Cut(text, "|")
	return h.messages[key]
}

// leaves keeps that a message was there at the end, and counts how many there were by the queue.
func (h *History) leaves(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.of(text); m != nil {
		m.left = true
	}
}

func (h *History) counts(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counted = n
}

// Promoted is to be called when the primary was lost, and its successor serves: what was done before, and had not arrived,
// is undone.
func (h *History) Promoted(lost, serves time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost, h.promoted = lost, serves
}

// undone reports whether what was sent at a time may be unknown to who answered at another one.
func (h *History) undone(sent, answered time.Time) bool {
	return sent.Before(h.promoted) && !answered.Before(h.lost)
}

// Acked is how many puts and deletions were acknowledged, and how many messages were got.
func (h *History) Acked() (puts, deletions, gets int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.order {
		if m.put == acked {
			puts++
		}
		deletions += min(1, len(m.deletions))
	}
	return puts, deletions, h.gets
}

// Check is the error of what is wrong after a Drain. safe is the time up to which nothing may be lost by a promotion: what
// was acknowledged until then, or sent since Promoted, holds.
func (h *History) Check(safe time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := slices.Clone(h.strange)
	left := 0
	for _, m := range h.order {
		if m.left {
			left++
		}
		errs = append(errs, h.check(m, safe)...)
	}
	if left != h.counted {
		errs = append(errs, fmt.Errorf("%w: %d are said to be there, %d are", ErrCount, h.counted, left))
	}
	return errors.Join(errs...)
}

func (h *History) check(m *message, safe time.Time) (errs []error) {
	holds := func(sent, ended time.Time) bool {
		return !sent.Before(h.promoted) || !ended.After(safe)
	}
	say := func(kind error, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s: %s", kind, m.key, fmt.Sprintf(format, args...)))
	}
	seen := len(m.holds) > 0
	switch {
	case m.put == refused && seen:
		say(ErrInvented, "its put was refused, and it was got")
	case m.put == acked && holds(m.putSent, m.putAt) && !m.asked && !m.left:
		say(ErrLost, "got %v, never deleted, and not there at the end", seen)
	}
	for _, d := range m.deletions {
		if m.left && holds(d[0], d[1]) {
			say(ErrDeleted, "it is there at the end")
		}
	}
	for id := range m.holds {
		if m.put == acked && id != m.id {
			say(ErrTwice, "put as %s, got as %s", m.id, id)
		}
		got := slices.Clone(m.holds[id])
		slices.SortStableFunc(got, func(a, b *hold) int { return a.count - b.count })
		for _, g := range got {
			for _, d := range m.deletions {
				if d[1].Before(g.sent) && !h.undone(d[0], g.ended) {
					say(ErrDeleted, "got by %d, %v after", g.byWhom, g.sent.Sub(d[1]))
				}
			}
		}
		for i, next := range got[min(1, len(got)):] {
			switch held := got[i]; {
			case h.undone(held.sent, next.ended):
			case held.count == next.count:
				say(ErrHidden, "got twice as the %d. time, by %d and %d", held.count, held.byWhom, next.byWhom)
			case next.ended.Before(held.until) && !h.Stepped:
				say(ErrHidden, "got by %d (%d. time), %v before it was visible again to %d (%d. time)",
					next.byWhom, next.count, held.until.Sub(next.ended), held.byWhom, held.count)
			}
		}
	}
	return errs
}
