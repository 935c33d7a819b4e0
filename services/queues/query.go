package queues

import (
	"errors"

	"antipode/geo"
	"antipode/stamp/kv"
)

// peekMax is how many rows a peek walks over.
const peekMax = 10_000

// peek returns up to limit visible messages of a subqueue: visible by now, or by the last change of the subqueue if
// that is later, since the clock of this server may be behind that of the one which took the message.
func peek(r kv.Reader, at Subqueue, limit int, now geo.Timestamp) (out []Message, err error) {
	prefix := at.Partition().Append(nil)
	h, exists, err := readHead(r, prefix, at.ID)
	if err != nil || !exists || h.count == 0 || h.state == StateToBeDeleted {
		return nil, err
	}
	now = max(now, h.last)
	from := appendVisible(prefix[:len(prefix):len(prefix)], h.first)
	end := appendVisible(prefix[:len(prefix):len(prefix)], now+1)
	it, err := r.Scan(from, end)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for walked := 0; walked < peekMax && len(out) < limit && it.Next(); walked++ {
		p, m, err := parseRow(prefix, it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		if m.expired(now) {
			continue
		}
		text, err := textOf(r, prefix, p, &m)
		if err != nil {
			return nil, err
		}
		out = append(out, Message{
			ID: p.id, Inserted: m.inserted, Expires: m.expires, Visible: p.visible, DequeueCount: m.dequeues,
			Text: append([]byte{}, text...),
		})
	}
	return out, nil
}

// count returns how many messages are in a subqueue, and its state; zero if it was never opened.
func count(get kv.Getter, at Subqueue) (n uint64, s State, err error) {
	h, _, err := readHead(get, at.Partition().Append(nil), at.ID)
	return h.count, h.state, err
}
