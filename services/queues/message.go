package queues

import (
	"encoding/hex"

	"antipode/geo"
	"antipode/services/storageerr"
)

// MessageID names a message within its queue. It is random.
type MessageID [16]byte

// String returns the id as the text of a GUID.
func (id MessageID) String() string {
	var b [36]byte
	hex.Encode(b[:], id[:4])
	b[8] = '-'
	hex.Encode(b[9:], id[4:6])
	b[13] = '-'
	hex.Encode(b[14:], id[6:8])
	b[18] = '-'
	hex.Encode(b[19:], id[8:10])
	b[23] = '-'
	hex.Encode(b[24:], id[10:])
	return string(b[:])
}

// ParseMessageID reads what String wrote, in any case of its letters; ok is false for other text, which names no
// message.
func ParseMessageID(s string) (id MessageID, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return MessageID{}, false
	}
	b, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	if err != nil {
		return MessageID{}, false
	}
	return MessageID(b), true
}

// sealedVersion is the version of the GUIDs that are ids of messages whose receipts always have a seal. Before there were
// seals it was 4.
const sealedVersion = 8

// isSealed reports whether no receipt of the message was ever given without a seal.
func (id MessageID) isSealed() bool { return id[6]>>4 == sealedVersion }

// Message is a message as a call returns it.
type Message struct {
	ID       MessageID
	Inserted geo.Timestamp
	// Expires is zero for never.
	Expires geo.Timestamp
	// Visible is when it becomes, or became, visible.
	Visible geo.Timestamp
	// DequeueCount is how often it was got.
	DequeueCount uint32
	// Text of a message that was got or peeked.
	Text []byte
	// Receipt names the message to Update and Delete until it is got or updated again; empty if it was peeked. Clients get
	// it with a seal (Secret).
	Receipt string
}

// ErrReceipt is the error for a text that is no receipt (protocol/queue.md 9.4).
func ErrReceipt(receipt string) error {
	return invalidParameter("popreceipt", receipt, "Invalid pop receipt format")
}

func invalidParameter(name, value, reason string) error {
	return storageerr.InvalidQueryParameter.With("QueryParameterName", name, "QueryParameterValue", value, "Reason", reason)
}
