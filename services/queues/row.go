package queues

import (
	"encoding/binary"
	"encoding/hex"
	"math"

	"antipode/geo"
	"antipode/stamp/keys"
)

// InlineMax is the longest text, in bytes, that stands in the row of its message. A longer one has another row, so
// that Get, which moves the row of the message, does not write the text again. Up to here the second row costs more
// processor time than the bytes do (BenchmarkCycles), which go through the log and to the other location once more.
const InlineMax = 2048

// SubqueueID names a subqueue within its queue. It is random but for that of the first one, zero.
type SubqueueID uint64

// String returns the id in 16 hex digits.
func (id SubqueueID) String() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return hex.EncodeToString(b[:])
}

// MarshalText is String: as a number it would not pass through every reader of JSON.
func (id SubqueueID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *SubqueueID) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != 8 {
		return keys.ErrMalformed
	}
	*id = SubqueueID(binary.BigEndian.Uint64(b))
	return nil
}

// Subqueue is one subqueue of a queue.
type Subqueue struct {
	Queue
	ID SubqueueID
}

// Partition is where the rows of the subqueue are.
func (s Subqueue) Partition() keys.Partition {
	return s.partition(s.ID.String())
}

// DictionaryPartition is where the dictionary of the queue is.
func (q Queue) DictionaryPartition() keys.Partition { return q.partition("") }

func (q Queue) partition(object string) keys.Partition {
	return keys.Partition{Service: geo.Queue, Account: q.Account, Container: q.Name, Generation: q.Generation, Object: object}
}

// The first byte of a row's key within its partition: see docs/format/queue.md.
const (
	rowHead       byte = 0x01
	rowMessage    byte = 0x02
	rowText       byte = 0x03
	rowDictionary byte = 0x04
)

// State is what a subqueue takes (protocol/queue.md 15). It is in rows: never renumber one.
type State byte

// The states.
const (
	StateAll State = iota + 1
	StateAllExceptPut
	StateDisabled
	StateToBeDeleted
	stateEnd
)

// schemaCurrent is the version of the rows of subqueues that are made now. A subqueue keeps its own.
const schemaCurrent = 1

// head is the head row of a subqueue.
type head struct {
	state  State
	schema byte
	// first is where a dequeue begins to walk: no message that lives is visible from an earlier time (guarantee H).
	first geo.Timestamp
	// count is how many messages there are, visible or not.
	count uint64
	// last is the commit time of the last change of the subqueue: a peek that sees it is made for no earlier time.
	last geo.Timestamp
}

const (
	headFormat = 1
	headBytes  = 3 + 3*8
)

func (h *head) append(dst []byte) []byte {
	dst = append(dst, headFormat, byte(h.state), h.schema)
	for _, n := range []uint64{uint64(h.first), h.count, uint64(h.last)} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return dst
}

func parseHead(b []byte) (h head, err error) {
	if len(b) != headBytes || b[0] != headFormat || b[1] == 0 || State(b[1]) >= stateEnd {
		return h, keys.ErrMalformed
	}
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(b[3+8*i:]) }
	return head{
		state: State(b[1]), schema: b[2],
		first: geo.Timestamp(n(0)), count: n(1), last: geo.Timestamp(n(2)),
	}, nil
}

// place is the key of a message's row within its partition: messages stand in the order in which they become visible.
type place struct {
	visible geo.Timestamp
	id      MessageID
}

const placeBytes = 1 + 8 + 16

func (p place) append(dst []byte) []byte {
	return append(appendVisible(dst, p.visible), p.id[:]...)
}

// appendVisible appends the first key of the messages that are visible from a time on.
func appendVisible(dst []byte, from geo.Timestamp) []byte {
	return binary.BigEndian.AppendUint64(append(dst, rowMessage), uint64(from))
}

func parsePlace(row []byte) (p place, err error) {
	if len(row) != placeBytes || row[0] != rowMessage {
		return p, keys.ErrMalformed
	}
	return place{geo.Timestamp(binary.BigEndian.Uint64(row[1:])), MessageID(row[9:])}, nil
}

func textRow(id MessageID) []byte { return append([]byte{rowText}, id[:]...) }

// message is the row of a message.
type message struct {
	inserted, expires geo.Timestamp
	dequeues          uint32
	// apart: the text is in another row. Else it is text.
	apart bool
	text  []byte
}

const (
	messageFormat = 1
	messageHeader = 2 + 8 + 8 + 4
)

func (m *message) append(dst []byte) []byte {
	apart := byte(0)
	if m.apart {
		apart = 1
	}
	dst = append(dst, messageFormat, apart)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.inserted))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.expires))
	dst = binary.LittleEndian.AppendUint32(dst, m.dequeues)
	return append(dst, m.text...)
}

// parseMessage decodes the row of a message. Its text aliases b.
func parseMessage(b []byte) (m message, err error) {
	if len(b) < messageHeader || b[0] != messageFormat || b[1] > 1 || b[1] == 1 && len(b) != messageHeader {
		return m, keys.ErrMalformed
	}
	return message{
		apart:    b[1] == 1,
		inserted: geo.Timestamp(binary.LittleEndian.Uint64(b[2:])),
		expires:  geo.Timestamp(binary.LittleEndian.Uint64(b[10:])),
		dequeues: binary.LittleEndian.Uint32(b[18:]),
		text:     b[messageHeader:],
	}, nil
}

func (m *message) expired(at geo.Timestamp) bool { return m.expires != 0 && m.expires <= at }

// after returns the time d after t, the last one at most.
func after(t geo.Timestamp, d int64) geo.Timestamp {
	if sum := t + geo.Timestamp(d); sum >= t {
		return sum
	}
	return math.MaxUint64
}
