package queues

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// sealedID is the id of a message as Service makes them.
func sealedID(t *testing.T) MessageID {
	c := chooser{random: rand.Reader}
	id, err := c.newID()
	require.NoError(t, err)
	require.True(t, id.isSealed())
	require.Equal(t, "8", id.String()[14:15])
	return id
}

// sealed is a receipt as a client gets it.
func sealed(s Secret, q Queue, id MessageID) string {
	list := []Message{{ID: id, Receipt: goldenReceipt.encode(q, id)}}
	s.Seal(q, list)
	return list[0].Receipt
}

// A receipt is opened for the message that it was given for, with the key of its account, and for nothing else
// (protocol/queue.md 9.4). What it says is good in any life of the queue: its message is then not found.
func TestSeals(t *testing.T) {
	t.Parallel()
	key, q, id := NewSecret([]byte("key")), goldenQueue(), sealedID(t)
	text := sealed(key, q, id)
	require.Len(t, text, receiptText+sealText)
	require.Equal(t, text, sealed(NewSecret([]byte("key")), q, id), "the other location gives the same one")
	receipt, err := key.Open(q, id, text)
	require.NoError(t, err)
	require.Equal(t, goldenReceipt.encode(q, id), receipt)
	again := q
	again.Generation.Created++
	_, err = key.Open(again, id, text)
	require.NoError(t, err)

	// Each of these has a plain part that is right for what it is opened for, and a seal for something else.
	other := q
	other.Name = "others"
	elsewhere := q
	elsewhere.Account = "acct2"
	for what, seal := range map[string]string{
		"key":     NewSecret([]byte("key2")).seal(q, id, receipt),
		"queue":   key.seal(other, id, receipt),
		"account": key.seal(elsewhere, id, receipt),
		"message": key.seal(q, sealedID(t), receipt),
		"receipt": key.seal(q, id, receipt+"A"),
		"letters": strings.Repeat("!", sealText),
	} {
		_, err := key.Open(q, id, receipt+seal)
		require.ErrorIs(t, err, storageerr.PopReceiptMismatch, what)
	}
	for _, none := range []string{"", text[:receiptText-1], text[:receiptText+1], text + "A", "B" + text[1:]} {
		_, err := key.Open(q, id, none)
		require.ErrorIs(t, err, storageerr.InvalidQueryParameter, "%q", none)
		e, _ := storageerr.Of(err)
		require.Contains(t, e.Details, storageerr.Detail{Name: "QueryParameterValue", Value: none})
	}
}

// After an upgrade the receipts of the version before are taken for the messages that it put, and for no others.
func TestReceiptsOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	key, q := NewSecret([]byte("key")), goldenQueue()
	former := sealedID(t)
	former[6] = former[6]&0x0f | 0x40
	for id, want := range map[MessageID]error{former: nil, sealedID(t): storageerr.PopReceiptMismatch} {
		text := goldenReceipt.encode(q, id)
		receipt, err := key.Open(q, id, text)
		require.ErrorIs(t, err, want)
		if want == nil {
			require.Equal(t, text, receipt)
		}
		_, err = key.Open(q, id, sealed(key, q, id))
		require.NoError(t, err)
	}
}
