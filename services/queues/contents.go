package queues

import (
	"fmt"

	"antipode/geo"
)

// Contents is a subqueue as its rows have it, for those who check one.
type Contents struct {
	// State is zero for a subqueue that was never opened.
	State State
	// First is where a dequeue begins.
	First geo.Timestamp
	// Messages have no receipts.
	Messages map[MessageID]Message
}

// ReadContents reads a whole subqueue out of its rows, by their keys within the partition. The error names an
// invariant of the package that they break. It may be a message below the head, a count other than the number of
// messages, a message without its text, a text without its message, or a message that is there twice.
func ReadContents(rows map[string]string, id SubqueueID) (*Contents, error) {
	h, messages, texts, apart := head{}, map[MessageID]Message{}, 0, 0
	if id == 0 {
		h.state = StateAll
	}
	for row, value := range rows {
		if row == "" {
			return nil, fmt.Errorf("%w: a row without a key", errDamaged)
		}
		var err error
		switch row[0] {
		case rowHead:
			h, err = parseHead([]byte(value))
		case rowMessage:
			err = readMessage(rows, row, value, messages, &apart)
		case rowText:
			texts++
		default:
			err = fmt.Errorf("%w: row %x", errDamaged, row)
		}
		if err != nil {
			return nil, err
		}
	}
	for id, m := range messages {
		if m.Visible < h.first {
			return nil, fmt.Errorf("%w: message %s is visible from %s, the head is at %s", errDamaged, id, m.Visible, h.first)
		}
	}
	if texts != apart || h.count != uint64(len(messages)) {
		return nil, fmt.Errorf("%w: %d messages, the head counts %d; %d rows of texts, of %d messages",
			errDamaged, len(messages), h.count, texts, apart)
	}
	return &Contents{h.state, h.first, messages}, nil
}

func readMessage(rows map[string]string, row, value string, into map[MessageID]Message, apart *int) error {
	p, m, err := parseRow(nil, []byte(row), []byte(value))
	if err != nil {
		return err
	}
	if m.apart {
		text, ok := rows[string(textRow(p.id))]
		if !ok {
			return fmt.Errorf("%w: message %s has no text", errDamaged, p.id)
		}
		m.text = []byte(text)
		*apart++
	}
	if _, twice := into[p.id]; twice {
		return fmt.Errorf("%w: message %s is there twice", errDamaged, p.id)
	}
	into[p.id] = Message{
		ID: p.id, Inserted: m.inserted, Expires: m.expires, Visible: p.visible, DequeueCount: m.dequeues, Text: m.text,
	}
	return nil
}
