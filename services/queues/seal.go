package queues

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"

	"antipode/services/storageerr"
)

// Secret seals the receipts of an account: a client gets each receipt with a keyed hash behind it, and nobody can make one
// for a message that it was not given. Without a seal a signature that permits updates but no gets would reach every
// message whose time of visibility can be guessed.
//
// It is derived from the first key of the account, which both locations have by the account's record, from its creation
// on, and which nobody sees who may not do everything. So a seal changes nothing that is stored, and a receipt is good
// after a failover. A random secret in the record would be missing in the accounts of earlier versions, and would be
// dropped by a node of one that writes the record. The keys of an account never change; a call that changes them would
// have to keep the secret of the former first key in the record.
type Secret [sha256.Size]byte

// sealBytes is how much of the hash a receipt has, in bytes: a multiple of three, so that its text has no padding, and
// one form only.
const (
	sealBytes = 18
	sealText  = sealBytes / 3 * 4
)

// NewSecret returns the secret of the account whose first key is key1.
func NewSecret(key1 []byte) Secret {
	h := hmac.New(sha256.New, key1)
	_, _ = h.Write([]byte("pop receipts")) // It returns no errors. No text that is signed begins so (protocol/auth.md).
	return Secret(h.Sum(nil))
}

// seal is the text of the keyed hash over a receipt and what it is for.
func (s Secret) seal(q Queue, id MessageID, receipt string) string {
	h := hmac.New(sha256.New, s[:])
	for _, part := range []string{string(q.Account), "\x00", q.Name, "\x00", string(id[:]), receipt} {
		_, _ = h.Write([]byte(part)) // As above.
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil)[:sealBytes])
}

// Seal sets the receipts of messages that a call of Service returned to those that a client gets.
func (s Secret) Seal(q Queue, of []Message) {
	for i := range of {
		of[i].Receipt += s.seal(q, of[i].ID, of[i].Receipt)
	}
}

// Open returns the receipt that Update and Delete take for one of a client. Errors: ErrReceipt where it is none at all;
// PopReceiptMismatch where it was not given for the message. The generation of the queue is not looked at.
//
// An earlier version gave receipts without a seal. They are taken for the messages that it put, by whose ids they are
// known (MessageID.isSealed), as long as these live.
func (s Secret) Open(q Queue, id MessageID, text string) (receipt string, err error) {
	sealed := len(text) == receiptText+sealText
	if !sealed && len(text) != receiptText {
		return "", ErrReceipt(text)
	}
	receipt = text[:receiptText]
	switch _, err = newNamed(q, id, receipt); {
	case errors.Is(err, storageerr.InvalidQueryParameter):
		return "", ErrReceipt(text)
	case err != nil:
		return "", err
	case !sealed && id.isSealed(),
		sealed && subtle.ConstantTimeCompare([]byte(text[receiptText:]), []byte(s.seal(q, id, receipt))) != 1:
		return "", storageerr.PopReceiptMismatch
	}
	return receipt, nil
}
