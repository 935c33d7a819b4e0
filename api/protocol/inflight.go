package protocol

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"antipode/geo"
	"antipode/services/storageerr"
)

// InFlight bounds the memory that requests hold at once: what came of their bodies, or the
// pages of their answers. Methods may be called concurrently.
//
// A Hold is charged step by step, as the memory is needed: a body that was announced and
// never comes costs nothing. One account holds half of the bound at most, so the others
// find the rest.
//
// Progress. A hold that asks once (Take) ends as fast as its sender sends, or is ended
// (WatchSender, the time of its request). It may use the whole bound, but if it needs more
// than the bound without the reserve it may wait for as long as others come.
//
// Holds that grow in steps could each keep a part and wait for more for ever. So both bounds,
// the share of an account and the whole, have a reserve that growing holds leave free, except
// one hold each: the first of the account, which is the account's oldest hold that waits, and
// the first of the process, which is the oldest among the firsts of the accounts. A hold stays
// first until it has all that it asked for, or is released. No growing hold asks for more than
// a reserve. So the hold that is first in its account and in the process gets everything it
// asks for as soon as the holds that ask once have ended, and then the next one becomes first.
// There is no deadlock between the two kinds of firsts: a hold becomes first of the process
// only while it is first of its account.
//
// Slow senders. While a hold waits, the sender with the lowest rate below
// pressedBytesPerSecond is broken off with 503, so that scarce memory goes to bodies that are
// complete soon. The sender of a body that is copied from elsewhere is its source.
type InFlight struct {
	max, share, reserve int64

	mu       sync.Mutex
	held     int64                         // of all holds
	first    *Hold                         // may use the reserve; nil where nothing waits
	accounts map[geo.Account]*accountShare // those that hold or await something
	sending  map[*Hold]struct{}            // holds whose sender is watched
	waiting  []*waiter                     // by the age of their holds
	begun    uint64                        // numbers holds by age
}

// accountShare is what one account holds. Guarded by InFlight.mu.
type accountShare struct {
	held  int64
	holds int // that refer to it
	first *Hold
}

type waiter struct {
	hold    *Hold
	n       int64
	granted chan struct{}
}

const (
	// pressedBytesPerSecond is what a sender must bring while others wait for memory.
	pressedBytesPerSecond = 256 << 10
	// pressEvery is how often a hold that waits looks for a slow sender, where no more than
	// pressCrowd wait. Each look walks over all senders, so in a crowd each looks less often.
	pressEvery = 100 * time.Millisecond
	pressCrowd = 64
)

// NewInFlight returns a bound of bytesMax bytes. A hold that grows counts for a quarter of
// it at most.
func NewInFlight(bytesMax int64) *InFlight { return NewInFlightOf(bytesMax, bytesMax/4) }

// NewInFlightOf returns a bound of bytesMax bytes for holds that grow to holdMax at most:
// the reserve.
func NewInFlightOf(bytesMax, holdMax int64) *InFlight {
	share := max(1, bytesMax/2)
	return &InFlight{
		max: bytesMax, share: share, reserve: max(1, min(holdMax, share)),
		accounts: map[geo.Account]*accountShare{}, sending: map[*Hold]struct{}{},
	}
}

// Hold is what one request holds. Its methods may be called concurrently, but for Release.
type Hold struct {
	f       *InFlight
	account geo.Account
	sender  sender // nil if none is watched
	number  uint64
	// The rest is guarded by f.mu.
	share *accountShare // nil once released
	held  int64
	once  bool // asks once
}

// sender is who sends what fills the memory of a hold.
type sender interface {
	// rate is what came lately, in bytes per second.
	rate() float64
	// breakOff lets its reader fail.
	breakOff()
}

// Hold begins with nothing held. Release must follow. r is the request whose body fills
// the memory; the hold counts for its account.
func (f *InFlight) Hold(r *Request) *Hold {
	if body := watchedSender(r.HTTP); body != nil {
		return f.holdOf(r, body)
	}
	return f.holdOf(r, nil)
}

// HoldFrom is Hold where not the body of r fills the memory, but a source.
func (f *InFlight) HoldFrom(r *Request, source *SourceBody) *Hold { return f.holdOf(r, source) }

func (f *InFlight) holdOf(r *Request, from sender) *Hold {
	account := geo.Account("")
	if r.Account != nil {
		account = r.Account.Name
	}
	h := f.begin(account)
	if h.sender = from; from != nil {
		f.mu.Lock()
		f.sending[h] = struct{}{}
		f.mu.Unlock()
	}
	return h
}

func (f *InFlight) begin(account geo.Account) *Hold {
	f.mu.Lock()
	defer f.mu.Unlock()
	share := f.accounts[account]
	if share == nil {
		share = &accountShare{}
		f.accounts[account] = share
	}
	share.holds++
	f.begun++
	return &Hold{f: f, account: account, number: f.begun, share: share}
}

// Grow waits until n more bytes may be held. ServerBusy where ctx ends before: nothing
// more is held.
func (h *Hold) Grow(ctx context.Context, n int64) error { return h.ask(ctx, n, false) }

// Take is Grow of a hold that asks for nothing else, before or after.
func (h *Hold) Take(ctx context.Context, n int64) error { return h.ask(ctx, n, true) }

func (h *Hold) ask(ctx context.Context, n int64, once bool) error {
	f := h.f
	f.mu.Lock()
	h.once = once
	n = h.counted(n)
	if f.fits(h, n) {
		f.take(h, n)
		f.mu.Unlock()
		return nil
	}
	w := &waiter{h, n, make(chan struct{})}
	at, _ := slices.BinarySearchFunc(f.waiting, h.number, func(w *waiter, number uint64) int {
		if w.hold.number <= number {
			return -1
		}
		return 1
	})
	f.waiting = slices.Insert(f.waiting, at, w)
	f.grant()
	crowd := len(f.waiting)
	f.mu.Unlock()
	return w.wait(ctx, crowd)
}

// counted is how much n more bytes count for.
func (h *Hold) counted(n int64) int64 {
	most := h.f.reserve
	if h.once {
		if most = h.f.max; h.account != "" {
			most = h.f.share
		}
	}
	return max(0, min(n, most-h.held))
}

// fits reports whether h may hold n more bytes.
func (f *InFlight) fits(h *Hold, n int64) bool {
	all, own := f.max, f.share
	if f.first != h && (f.first != nil || !h.once) {
		all -= f.reserve
	}
	if first := h.share.first; first != h && (first != nil || !h.once) {
		own -= f.reserve
	}
	return n == 0 || f.held+n <= all && (h.account == "" || h.share.held+n <= own)
}

func (f *InFlight) take(h *Hold, n int64) {
	h.held += n
	h.share.held += n
	f.held += n
	if h.once {
		f.leaveFirst(h)
	}
}

// grant gives memory to those that wait, the oldest first, and says who is first.
func (f *InFlight) grant() {
	for more := true; more; {
		f.nameFirst()
		before := len(f.waiting)
		f.waiting = slices.DeleteFunc(f.waiting, func(w *waiter) bool {
			if !f.fits(w.hold, w.n) {
				return false
			}
			f.take(w.hold, w.n)
			close(w.granted)
			return true
		})
		more = len(f.waiting) < before
	}
}

func (f *InFlight) nameFirst() {
	for _, w := range f.waiting {
		if w.hold.share.first == nil {
			w.hold.share.first = w.hold
		}
		if f.first == nil && w.hold.share.first == w.hold {
			f.first = w.hold
		}
	}
}

// wait waits for the memory.
func (w *waiter) wait(ctx context.Context, crowd int) error {
	press := time.NewTicker(pressEvery * time.Duration(1+crowd/pressCrowd))
	defer press.Stop()
	for {
		select {
		case <-w.granted:
			return nil
		default:
		}
		w.hold.f.breakSlowest(w.hold)
		select {
		case <-w.granted:
			return nil
		case <-press.C:
		case <-ctx.Done():
			if w.leave() {
				return storageerr.ServerBusy
			}
			return nil
		}
	}
}

// leave reports whether the waiter left without memory: it may have been granted meanwhile.
func (w *waiter) leave() bool {
	f := w.hold.f
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.Index(f.waiting, w)
	if at >= 0 {
		f.waiting = slices.Delete(f.waiting, at, at+1)
	}
	return at >= 0
}

// breakSlowest breaks off the slowest sender of those whose memory h could use.
func (f *InFlight) breakSlowest(h *Hold) {
	if slowest := f.slowest(h); slowest != nil {
		slowest.sender.breakOff()
	}
}

// slowest returns the hold with the slowest sender, which is not looked at again; nil where
// none is slow.
func (f *InFlight) slowest(h *Hold) *Hold {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := h.account != "" && f.share-h.share.held < f.max-f.held // Its account's would help first.
	var slowest *Hold
	least := float64(pressedBytesPerSecond)
	for other := range f.sending {
		if other == h || other.held == 0 || own && other.share != h.share {
			continue
		}
		if rate := other.sender.rate(); rate < least {
			slowest, least = other, rate
		}
	}
	delete(f.sending, slowest)
	return slowest
}

// Release gives everything back. It may be called again, and for a nil Hold.
func (h *Hold) Release() {
	if h == nil {
		return
	}
	f := h.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.share == nil {
		return
	}
	h.share.held -= h.held
	f.held -= h.held
	delete(f.sending, h)
	f.leaveFirst(h)
	f.dropShare(h.account, h.share)
	h.share = nil
	f.grant()
}

// leaveFirst lets another hold be first.
func (f *InFlight) leaveFirst(h *Hold) {
	if h.share.first == h {
		h.share.first = nil
	}
	if f.first == h {
		f.first = nil
	}
}

// watchedSender returns the body that WatchSender put on a request; nil if it put none.
func watchedSender(r *http.Request) *watchedBody {
	watched, _ := r.Body.(*watchedBody)
	return watched
}
