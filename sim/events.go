package sim

import (
	"container/heap"
	"fmt"
	"hash"
	"time"

	"github.com/cespare/xxhash/v2"
)

// eventLog hashes every observable event, and keeps the newest for the report of a
// broken promise.
type eventLog struct {
	h     hash.Hash64
	count int
	// recent is a ring of the newest lines.
	recent []string
	tee    func(string)
}

// recentMax is how many lines a report of a broken promise shows.
const recentMax = 60

func newEventLog(tee func(string)) *eventLog { return &eventLog{h: xxhash.New(), tee: tee} }

func (l *eventLog) add(line string) {
	_, _ = l.h.Write([]byte(line)) // A hash never fails.
	_, _ = l.h.Write([]byte{'\n'})
	if len(l.recent) < recentMax {
		l.recent = append(l.recent, line)
	} else {
		l.recent[l.count%recentMax] = line
	}
	l.count++
	if l.tee != nil {
		l.tee(line)
	}
}

// lines returns the newest lines, oldest first.
func (l *eventLog) lines() []string {
	if len(l.recent) < recentMax {
		return l.recent
	}
	at := l.count % recentMax
	return append(append([]string(nil), l.recent[at:]...), l.recent[:at]...)
}

// event logs one observable event.
func (s *Sim) event(format string, args ...any) {
	s.log.add(fmt.Sprintf("%d ", s.now.Microseconds()) + fmt.Sprintf(format, args...))
}

// timer is something that will happen.
type timer struct {
	at  time.Duration
	seq uint64
	f   func()
}

// timers is what will happen, by time and then by when it was asked for.
type timers struct {
	heap timerHeap
	seq  uint64
}

type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)   { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}

// after makes f happen d from now.
func (s *Sim) after(d time.Duration, f func()) {
	s.timers.seq++
	heap.Push(&s.timers.heap, timer{s.now + d, s.timers.seq, f})
}

// fire runs what is due.
func (s *Sim) fire() {
	for len(s.timers.heap) > 0 && s.timers.heap[0].at <= s.now {
		heap.Pop(&s.timers.heap).(timer).f()
	}
}
