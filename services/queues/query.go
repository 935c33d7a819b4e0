package queues

import (
	"context"
	"errors"

	"antipode/geo"
	"antipode/services"
	"antipode/stamp/kv"
)

// peekWorkMax bounds the work of a peek that walks over messages which have expired and are not collected yet, in values
// read: half a second of one processor for two million short ones.
const peekWorkMax = 2_000_000

// peek returns up to limit visible messages of a subqueue: visible by now, or by the last change of the subqueue if
// that is later, since the clock of this server may be behind that of the one which took the message. more: the budget ended
// before the messages did.
func peek(
	ctx context.Context, r kv.Reader, at Subqueue, limit int, now geo.Timestamp, b *services.Budget,
) (out []Message, more bool, err error) {
	prefix := at.Partition().Append(nil)
	h, exists, err := readHead(r, prefix, at.ID)
	if err != nil || !exists || h.count == 0 || h.state == StateToBeDeleted {
		return nil, false, err
	}
	now = max(now, h.last)
	from := appendVisible(prefix[:len(prefix):len(prefix)], h.first)
	end := appendVisible(prefix[:len(prefix):len(prefix)], now+1)
	it, err := r.Scan(from, end)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for len(out) < limit && it.Next() {
		p, m, err := parseRow(prefix, it.Key(), it.Value())
		if err != nil {
			return nil, false, err
		}
		if m.expired(now) {
			goOn, err := b.Spend(ctx, 1+services.BytesWork(len(it.Value())))
			if err != nil || !goOn {
				return out, true, err
			}
			continue
		}
		text, err := textOf(r, prefix, p, &m)
		if err != nil {
			return nil, false, err
		}
		out = append(out, Message{
			ID: p.id, Inserted: m.inserted, Expires: m.expires, Visible: p.visible, DequeueCount: m.dequeues,
			Text: append([]byte{}, text...),
		})
	}
	return out, false, nil
}

// count returns how many messages are in a subqueue, and its state; zero if it was never opened.
func count(get kv.Getter, at Subqueue) (n uint64, s State, err error) {
	h, _, err := readHead(get, at.Partition().Append(nil), at.ID)
	return h.count, h.state, err
}
