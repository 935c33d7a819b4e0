package pace

import "time"

// Window bounds the bytes under way on a line. Bytes under way wait on the line before anything sent later,
// by this sender or another. More of them than the line carries in a second move nothing sooner, and take
// memory. On a narrow line they last until the other side seems not to answer, so that the same bytes are
// sent again. Its user guards it.
//
// The window doubles with each round trip while it is used up and answers come within Good, and is halved
// once for a round trip above Late. After a failure it begins again.
type Window struct {
	// Bytes is the window; Least and Most are its bounds.
	Bytes, Least, Most int

	// limited reports that the window was used up since it shrank last.
	limited bool
	// shrunkAt is when it shrank last: what was sent before that was late for the same reason.
	shrunkAt time.Duration
}

// How long it takes to be answered where there is room for more, and where there is too much under way.
const (
	Good = 500 * time.Millisecond
	Late = time.Second
)

// Admits reports whether more may be sent while some bytes are under way.
func (w *Window) Admits(under int) bool {
	if under >= w.Bytes {
		w.limited = true
		return false
	}
	return true
}

// Answered takes the times at which some bytes were sent and answered.
func (w *Window) Answered(bytes int, sent, now time.Duration) {
	switch took := now - sent; {
	case took > Late && sent >= w.shrunkAt:
		w.Bytes, w.limited, w.shrunkAt = max(w.Bytes/2, w.Least), false, now
	case took <= Good && w.limited:
		w.Bytes = min(w.Bytes+bytes, max(w.Most, w.Bytes))
	}
}

// Failed takes that bytes were not answered.
func (w *Window) Failed(now time.Duration) {
	w.Bytes, w.limited, w.shrunkAt = w.Least, false, now
}
