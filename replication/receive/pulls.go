package receive

import (
	"bytes"
	"container/heap"
	"time"

	"antipode/geo"
)

// pulls are those of one range. Requests reserve their bytes, and records hold them until they are committed
// or dropped. The bytes stay below share, an equal share of PullBytesMax for each range, so that a range whose
// source does not answer takes none from another. Within it those that are due go in the order in which they
// became due: one that was served waits for all others. The first is not passed over for a smaller one. The
// records that wait and are kept have other room, so that no pull waits for what they wait for.
type pulls struct {
	of  map[geo.Stream]*pull
	due pullHeap // those that may ask, or wait for their time
	// order numbers the pulls as they come into due.
	order uint64
	// asking are the requests under way; bytes is what those and the records have of share.
	asking, bytes, share int
	// kept are the bytes of the records that wait, at most keptMax.
	kept, keptMax int
	// ahead are the pulls that wait for the clock.
	ahead int
}

// keptShare is which part of what the pulls of a range may hold is for records that wait: one in so many.
const keptShare = 4

func newPulls(share int) pulls {
	kept := share / keptShare
	return pulls{of: map[geo.Stream]*pull{}, share: max(1, share-kept), keptMax: kept}
}

// pullsMax bounds the requests of a range that are under way. Requests for one record reserve
// little, so bytes alone would not bound them.
const pullsMax = 16

// pullBytesMax bounds one answer of the source, but for a single larger record.
const pullBytesMax = 256 << 10

// schedule sets when a pull may ask next. It is due then, unless something of it is under way.
func (ps *pulls) schedule(p *pull, at time.Duration) {
	p.at = at
	switch idle := !p.asking && !p.stopping && p.queued == 0 && p.chunks == 0 && len(p.missing) == 0; {
	case ps.of[p.stream] != p:
	case !idle && p.index >= 0:
		heap.Remove(&ps.due, p.index)
	case idle && p.index >= 0:
		heap.Fix(&ps.due, p.index)
	case idle:
		ps.order++
		p.order = ps.order
		heap.Push(&ps.due, p)
	}
}

// end forgets the pull of a stream. What is under way of it changes nothing when it arrives.
func (ps *pulls) end(st geo.Stream) {
	p := ps.of[st]
	if p == nil {
		return
	}
	if p.index >= 0 {
		heap.Remove(&ps.due, p.index)
	}
	ps.setAhead(p, false)
	ps.keep(p, nil)
	delete(ps.of, st)
}

// keep keeps a copy of the next record of a pull in the place of the one before it, if there is room; nil keeps none.
func (ps *pulls) keep(p *pull, b []byte) {
	ps.kept -= len(p.kept)
	p.kept = nil
	if len(b) > 0 && ps.of[p.stream] == p && ps.kept+len(b) <= ps.keptMax {
		p.kept = bytes.Clone(b)
		ps.kept += len(b)
	}
}

func (ps *pulls) setAhead(p *pull, ahead bool) {
	if p.ahead != ahead {
		if p.ahead = ahead; ahead {
			ps.ahead++
		} else {
			ps.ahead--
		}
	}
}

// wants is how many bytes a pull reserves.
func (ps *pulls) wants(p *pull) int {
	if p.size > 0 {
		return p.size
	}
	return max(min(pullBytesMax, ps.share), p.last)
}

// admits reports whether a pull may ask now. One that wants more than all asks alone.
func (ps *pulls) admits(p *pull) bool {
	return ps.asking < pullsMax && (ps.bytes == 0 || ps.bytes+ps.wants(p) <= ps.share)
}

// step asks for what is due and fits. It returns when the next pull is due; what waits for room is woken
// by what frees it.
func (ps *pulls) step(rr *rangeReceiver, now time.Duration) time.Duration {
	for len(ps.due) > 0 && !rr.standing && rr.mirror.known {
		p := ps.due[0]
		if p.at > now {
			return p.at - now
		}
		if rr.mirror.applied[p.stream].Seq >= p.dropped {
			ps.end(p.stream)
			continue
		}
		if !ps.admits(p) {
			break
		}
		p.next(rr, now)
	}
	return checkEvery
}

// pullHeap orders pulls by when they are due.
type pullHeap []*pull

func (h pullHeap) Len() int { return len(h) }

func (h pullHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}

func (h pullHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *pullHeap) Push(x any) {
	p := x.(*pull)
	p.index = len(*h)
	*h = append(*h, p)
}

// Pop implements heap.Interface.
func (h *pullHeap) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	p.index = -1
	return p
}
