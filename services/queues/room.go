package queues

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"

	"antipode/geo"
	"antipode/stamp/keys"
)

// A range evaluates the commands of all its subqueues one after the other. So two subqueues of a queue in one range do
// not more than one of them, and a get may have to ask both: a queue gains only by one in another range.

// room is a range that can hold subqueues of a queue: those with ids from first to last.
type room struct {
	in          geo.RangeID
	first, last SubqueueID
}

// rooms returns the ranges that can hold subqueues of a queue, in the order of their keys. Subqueue 0 is left out: only a
// new queue has it.
func (s *Service) rooms(q Queue) (out []room) {
	prefix := keys.AppendContainer(nil, geo.Queue, q.Account, q.Name, q.Generation)
	first := SubqueueID(1)
	for _, d := range s.o.Stamp.Route().Holding(geo.Span{Start: string(prefix), End: string(keys.PrefixEnd(prefix))}) {
		last := lastBelow(q, d.Span.End)
		if last < first {
			continue // It holds other keys of the queue, such as its dictionary.
		}
		out = append(out, room{d.ID, first, last})
		if first = last + 1; first == 0 {
			break
		}
	}
	return out
}

// lastBelow returns the greatest id of a subqueue whose key is below end, zero if there is none. Keys are in the order of the
// ids.
func lastBelow(q Queue, end string) (id SubqueueID) {
	for bit := SubqueueID(1) << 63; bit > 0; bit >>= 1 {
		if string(Subqueue{q, id | bit}.Partition().Append(nil)) < end {
			id |= bit
		}
	}
	return id
}

// newSubqueueIn returns a random id of a subqueue, in a random one of some rooms.
func (c *chooser) newSubqueueIn(rooms []room) (SubqueueID, error) {
	i, err := c.intn(len(rooms))
	if err != nil {
		return 0, err
	}
	var b [8]byte
	if _, err := io.ReadFull(c.random, b[:]); err != nil {
		return 0, err
	}
	in := rooms[i]
	return in.first + SubqueueID(binary.LittleEndian.Uint64(b[:]))%(in.last-in.first+1), nil // None has all ids: 0 is left out.
}

// free returns the rooms that none of some subqueues is in.
func free(rooms []room, of []observed) []room {
	return slices.DeleteFunc(slices.Clone(rooms), func(r room) bool {
		return slices.ContainsFunc(of, func(s observed) bool { return s.in == r.in })
	})
}

// doubled returns those of some subqueues that are not alone in their range.
func doubled(of []observed) (out []observed) {
	n := map[geo.RangeID]int{}
	for _, s := range of {
		n[s.in]++
	}
	for _, s := range of {
		if n[s.in] > 1 {
			out = append(out, s)
		}
	}
	return out
}

// fewest returns that of some subqueues which is empty soonest.
func fewest(of []observed) observed {
	return slices.MinFunc(of, func(a, b observed) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(b.ID, a.ID)) })
}
