package queues

import (
	"net/http"
	"strconv"
	"unicode/utf8"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/queues"
	"antipode/services/storageerr"
)

// errNoMessage is the error of a body that is no message.
var errNoMessage = storageerr.InvalidXMLDocument.With("Reason", "The document is no QueueMessage with one MessageText.")

// parseMessage returns the text of the message that a body is (protocol/queue.md 9.1); never nil.
func parseMessage(body []byte) ([]byte, error) {
	root, err := wire.ParseElement(body)
	if err != nil {
		return nil, err
	}
	if root.Name != "QueueMessage" || len(root.Children) != 1 {
		return nil, errNoMessage
	}
	if err := root.Container("MessageText"); err != nil {
		return nil, err
	}
	text, err := root.Children[0].Leaf()
	if err != nil {
		return nil, err
	}
	return append([]byte{}, text...), nil
}

// answerKind is which elements a message has in an answer (protocol/queue.md 8).
type answerKind byte

const (
	ofPut answerKind = iota
	ofGet
	ofPeek
)

const (
	// windowBytes is where a part of a document goes out; windowMax is above what a part may grow to by the elements
	// of a message and a part of its text, all of it escaped.
	windowBytes = 32 << 10
	windowMax   = 64 << 10
	// partBytes is what is escaped of a text at once.
	partBytes = 4 << 10
)

// messageWriter writes the document of messages. One that fits in a window has its length in the header. Longer ones
// go out as they are made: texts may be escapedMax times as long where they are escaped.
type messageWriter struct {
	w       http.ResponseWriter
	status  int
	b       []byte
	begun   bool
	version protocol.Version
	kind    answerKind
	// most is how many bytes the document has at most.
	most int
}

// escapedMax is how many times as long as a text its escaped form is at most.
const escapedMax = 6

// answerMessages answers with a list of messages.
func (c *call) answerMessages(status int, kind answerKind, list []queues.Message) error {
	texts := 0
	for i := range list {
		texts += len(list[i].Text)
	}
	m := messageWriter{w: c.w, status: status, version: c.r.Version, kind: kind, most: escapedMax*texts + windowMax}
	m.b = append(make([]byte, 0, min(windowMax, texts+1<<10)), wire.XMLStart...)
	if len(list) == 0 {
		m.b = append(m.b, "<QueueMessagesList />"...)
		return m.end()
	}
	m.b = append(m.b, "<QueueMessagesList>"...)
	for i := range list {
		m.message(&list[i])
	}
	m.b = append(m.b, "</QueueMessagesList>"...)
	return m.end()
}

// message appends a message, its elements in the order of protocol/queue.md 8.
func (m *messageWriter) message(of *queues.Message) {
	m.b = append(m.b, "<QueueMessage>"...)
	m.b = wire.AppendElement(m.b, "MessageId", of.ID.String())
	m.time("InsertionTime", of.Inserted)
	if of.Expires == 0 {
		m.b = wire.AppendTimeElement(m.b, "ExpirationTime", never())
	} else {
		m.time("ExpirationTime", of.Expires)
	}
	if m.kind != ofPeek {
		m.b = wire.AppendElement(m.b, "PopReceipt", of.Receipt)
		m.time("TimeNextVisible", of.Visible)
	}
	if m.kind != ofPut {
		if m.version >= protocol.Version20090919 {
			m.b = wire.AppendElement(m.b, "DequeueCount", strconv.FormatUint(uint64(of.DequeueCount), 10))
		}
		m.b = append(m.b, "<MessageText>"...)
		m.text(of.Text)
		m.b = append(m.b, "</MessageText>"...)
	}
	m.b = append(m.b, "</QueueMessage>"...)
}

func (m *messageWriter) time(name string, ts geo.Timestamp) {
	m.b = wire.AppendTimeElement(m.b, name, ts.Time())
}

// text appends a text, escaped part by part, which end between two characters.
func (m *messageWriter) text(text []byte) {
	for len(text) > 0 {
		n := min(len(text), partBytes)
		for n < len(text) && n > partBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		m.b = wire.AppendXML(m.b, string(text[:n]))
		text = text[n:]
		if len(m.b) > windowBytes {
			m.flush()
		}
	}
}

// flush sends what is there. The client is gone when that fails.
func (m *messageWriter) flush() {
	if !m.begun {
		m.begun = true
		m.w.WriteHeader(m.status)
		if _, whole := m.w.Header()["Content-Length"]; !whole { // By its length the header gives the client its time.
			protocol.AnswerDocument(m.w, m.most)
		}
	}
	_, _ = m.w.Write(m.b)
	m.b = m.b[:0]
}

func (m *messageWriter) end() error {
	if !m.begun {
		m.w.Header()["Content-Length"] = []string{strconv.Itoa(len(m.b))}
	}
	m.flush()
	return nil
}
