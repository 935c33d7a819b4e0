package queues

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"hash/fnv"

	"antipode/geo"
	"antipode/services/storageerr"
)

// receipt is what a pop receipt says: the key of the message's row as it was when the receipt was given. The row of a
// message that was got or updated since has another key, so that an older receipt names nothing (protocol/queue.md 21).
type receipt struct {
	schema   byte
	subqueue SubqueueID
	visible  geo.Timestamp
}

// A receipt is the Base64 of: format, schema, subqueue (8 bytes, little-endian like all), visible from (8), check of
// queue and message (8), check sum of all before (4): docs/format/queue.md.
const (
	receiptFormat = 1
	receiptBytes  = 2 + 3*8 + 4
	receiptSum    = receiptBytes - 4
	receiptText   = receiptBytes / 3 * 4
)

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// receiptCheck differs between the receipts of two messages. The generation is not in it: a receipt from before
// a queue was deleted and created again names no message.
func receiptCheck(q Queue, id MessageID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(q.Account)) // It returns no errors.
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(q.Name))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(id[:])
	return h.Sum64()
}

func (r receipt) encode(q Queue, id MessageID) string {
	b := make([]byte, 0, receiptBytes)
	b = append(b, receiptFormat, r.schema)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.subqueue))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.visible))
	b = binary.LittleEndian.AppendUint64(b, receiptCheck(q, id))
	b = binary.LittleEndian.AppendUint32(b, castagnoli(b))
	return base64.StdEncoding.EncodeToString(b)
}

// parseReceipt reads a receipt of a message (protocol/queue.md 9.4). ErrReceipt: it is none at all. PopReceiptMismatch:
// it is that of another message, or queue.
func parseReceipt(text string, q Queue, id MessageID) (r receipt, err error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(text) != receiptText || len(b) != receiptBytes || b[0] != receiptFormat ||
		binary.LittleEndian.Uint32(b[receiptSum:]) != castagnoli(b[:receiptSum]) {
		return r, ErrReceipt(text)
	}
	if binary.LittleEndian.Uint64(b[18:]) != receiptCheck(q, id) {
		return r, storageerr.PopReceiptMismatch
	}
	return receipt{
		schema:   b[1],
		subqueue: SubqueueID(binary.LittleEndian.Uint64(b[2:])),
		visible:  geo.Timestamp(binary.LittleEndian.Uint64(b[10:])),
	}, nil
}
