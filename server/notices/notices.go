package notices

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/internal/clock"
)

const (
	// waitingMax is how many notices wait for a receiver that does not answer.
	waitingMax = 1000
	// retryFirst and retryMax are the shortest and the longest pause between two attempts.
	retryFirst = time.Second
	retryMax   = time.Minute
	// answerBytesMax is how much of an answer is read, so that the connection can be used again.
	answerBytesMax = 64 << 10
)

// SignatureHeader has the signature of the body: "sha256=" and the HMAC-SHA256 with the key of the configuration, in hex.
const SignatureHeader = "Antipode-Signature"

// Options configures Notices.
type Options struct {
	// URL is where notices are posted to.
	URL string
	// Key signs them; empty signs nothing.
	Key []byte
	// Timeout bounds an attempt. Zero means 10 s.
	Timeout time.Duration
	Logger  *slog.Logger
	// Wait pauses between attempts. Nil means clock.Wait.
	Wait func(ctx context.Context, d time.Duration) error
}

// Notice is the body of a notice.
type Notice struct {
	Version int `json:"version"`
	// Event is the event as the event log has it. Its location, time and number name it: one that comes again is the same.
	Event wire.Event `json:"event"`
	// Missed is how many notices before this one were dropped, since too many waited.
	Missed uint64 `json:"missed,omitempty"`
}

// Notices sends notices. Methods may be called concurrently.
type Notices struct {
	o      Options
	client http.Client
	end    context.CancelFunc
	ended  sync.WaitGroup
	// more has an element while notices may wait.
	more chan struct{}

	mu      sync.Mutex
	waiting []Notice
	missed  uint64
}

// Open begins to send. Close must follow.
func Open(o Options) *Notices {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Wait == nil {
		o.Wait = clock.Wait
	}
	n := &Notices{o: o, client: http.Client{
		Timeout: o.Timeout, Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// A redirected POST becomes a GET without the notice, and its answer would count as the receiver's.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, more: make(chan struct{}, 1)}
	ctx, end := context.WithCancel(context.Background())
	n.end = end
	n.ended.Go(func() { n.run(ctx) })
	return n
}

// Close ends the attempt that is under way. What waits is lost: the event log has it.
func (n *Notices) Close() {
	n.end()
	n.ended.Wait()
	n.client.CloseIdleConnections()
}

// Send has an event sent. It does not wait.
func (n *Notices) Send(e wire.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiting) >= waitingMax {
		n.missed++
		return
	}
	n.waiting = append(n.waiting, Notice{Version: 1, Event: e, Missed: n.missed})
	n.missed = 0
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// first returns the oldest notice that waits.
func (n *Notices) first() (Notice, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiting) == 0 {
		return Notice{}, false
	}
	return n.waiting[0], true
}

func (n *Notices) dropFirst() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting = n.waiting[1:]; len(n.waiting) == 0 {
		n.waiting = nil
	}
}

// run sends what waits until ctx ends.
func (n *Notices) run(ctx context.Context) {
	for pause := retryFirst; ctx.Err() == nil; {
		next, ok := n.first()
		if !ok {
			select {
			case <-n.more:
			case <-ctx.Done():
			}
			continue
		}
		if err := n.post(ctx, next); err != nil {
			if pause == retryFirst && ctx.Err() == nil {
				n.o.Logger.Warn("a notice of a failover does not arrive; it is sent again", "receiver", Receiver(n.o.URL), "error", err)
			}
			_ = n.o.Wait(ctx, pause)
			pause = min(2*pause, retryMax)
			continue
		}
		pause = retryFirst
		n.dropFirst()
	}
}

// Receiver is the scheme and the host of a receiver's URL: what may be logged, since the rest may hold a token.
func Receiver(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(no URL)"
	}
	return u.Scheme + "://" + u.Host
}

// withoutURL returns an error of net/http without the URL that its text has.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// post posts a notice. Any answer of the class 2xx takes it.
func (n *Notices) post(ctx context.Context, what Notice) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.o.URL, bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if len(n.o.Key) > 0 {
		r.Header.Set(SignatureHeader, Signature(n.o.Key, body))
	}
	a, err := n.client.Do(r)
	if err != nil {
		return withoutURL(err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(a.Body, answerBytesMax))
	_ = a.Body.Close()
	if a.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answered %s", a.Status)
	}
	return err
}

// ReadKey reads the key that signs notices. Blanks at its ends do not count.
func ReadKey(file string) ([]byte, error) {
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if key = bytes.TrimSpace(key); len(key) == 0 {
		return nil, fmt.Errorf("%s has no key", file)
	}
	return key, nil
}

// Signature is what SignatureHeader has for a body.
func Signature(key, body []byte) string {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(body)
	return "sha256=" + hex.EncodeToString(h.Sum(nil))
}
