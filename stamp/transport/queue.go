package transport

import (
	"sync"

	"antipode/stamp/node"
)

// queue holds what waits for one peer. It is closed at first: it takes messages
// while a stream stands.
type queue struct {
	bytesMax    int64
	messagesMax int
	// filled has room for one signal that the queue is no longer empty.
	filled chan struct{}

	mu sync.Mutex
	// items[head:] wait, in order.
	items []node.Envelope
	head  int
	bytes int64
	open  bool
	// sent counts what take gave out, dropped what put or close let go.
	sent, dropped uint64
	sentBytes     int64
}

func newQueue(bytesMax int64, messagesMax int) *queue {
	return &queue{bytesMax: bytesMax, messagesMax: messagesMax, filled: make(chan struct{}, 1)}
}

// put appends what there is room for.
func (q *queue) put(batch []node.Envelope) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range batch {
		size := e.Bytes()
		// A message above the bound passes alone.
		if !q.open || q.waiting() >= q.messagesMax || q.bytes > 0 && q.bytes+size > q.bytesMax {
			q.dropped++
			continue
		}
		q.items = append(q.items, e)
		q.bytes += size
	}
	if q.waiting() > 0 {
		select {
		case q.filled <- struct{}{}:
		default:
		}
	}
}

// waiting is how many wait. The caller holds mu.
func (q *queue) waiting() int { return len(q.items) - q.head }

// take moves messages of about bytesMax to out, one at least if any waits.
func (q *queue) take(out []node.Envelope, bytesMax int64) []node.Envelope {
	q.mu.Lock()
	defer q.mu.Unlock()
	for taken := int64(0); q.waiting() > 0; {
		size := q.items[q.head].Bytes()
		if taken > 0 && taken+size > bytesMax {
			break
		}
		taken += size
		out = append(out, q.items[q.head])
		q.items[q.head] = node.Envelope{}
		q.head++
		q.bytes -= size
		q.sent++
		q.sentBytes += size
	}
	if q.waiting() == 0 {
		q.items, q.head = q.items[:0], 0
	} else if q.head > len(q.items)/2 {
		// Room at the front is used again before append takes more.
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return out
}

// setOpen says whether a stream stands. Closing drops what waits.
func (q *queue) setOpen(open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = open
	if !open {
		q.dropped += uint64(q.waiting())
		q.items, q.head, q.bytes = nil, 0, 0
	}
}

// PeerStats is what a transport knows of one peer at one moment.
type PeerStats struct {
	// Connected means that a stream to the peer stands.
	Connected bool
	// Queued and QueuedBytes wait to be sent.
	Queued      int
	QueuedBytes int64
	// Sent and Dropped count messages since the start, SentBytes about what the sent ones
	// hold. One that was sent can still be lost on the way.
	Sent, Dropped uint64
	SentBytes     int64
}

func (q *queue) stats() PeerStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return PeerStats{Connected: q.open, Queued: q.waiting(), QueuedBytes: q.bytes, Sent: q.sent, Dropped: q.dropped, SentBytes: q.sentBytes}
}
