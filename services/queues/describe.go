package queues

import (
	"fmt"

	"antipode/stamp/keys"
)

// RowInfo says what a row of a queue is, for people.
type RowInfo struct {
	// Kind is head, message, text or dictionary.
	Kind string
	// Of names what the row is of, within its subqueue.
	Of string
	// Detail is what is in it.
	Detail string
}

// DescribeRow describes a row of a queue. The kind and what it is of depend on the key alone, and are set also where
// the value cannot be decoded; keys.ErrMalformed then.
func DescribeRow(row, value []byte) (i RowInfo, err error) {
	if len(row) == 0 {
		return i, keys.ErrMalformed
	}
	switch row[0] {
	case rowHead:
		i.Kind = "head"
		h, err := parseHead(value)
		i.Detail = fmt.Sprintf("state %d, schema %d, %d messages, walks from %s", h.state, h.schema, h.count, h.first)
		return i, err
	case rowMessage:
		i.Kind = "message"
		p, err := parsePlace(row)
		if err != nil {
			return i, err
		}
		i.Of = fmt.Sprintf("%s visible from %s", p.id, p.visible)
		m, err := parseMessage(value)
		i.Detail = fmt.Sprintf("inserted %s, got %d times, %d bytes here", m.inserted, m.dequeues, len(m.text))
		return i, err
	case rowText:
		i.Kind = "text"
		if len(row) != len(textRow(MessageID{})) {
			return i, keys.ErrMalformed
		}
		i.Of, i.Detail = MessageID(row[1:]).String(), fmt.Sprintf("%d bytes", len(value))
		return i, nil
	case rowDictionary:
		i.Kind = "dictionary"
		d, err := ParseDictionary(value)
		if err == nil {
			i.Detail = fmt.Sprintf("change %d, %d subqueues, %d of them live", d.Number, len(d.Subqueues), len(d.live()))
		}
		return i, err
	}
	return i, keys.ErrMalformed
}
