package queues

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/services/queues"
	"antipode/services/storageerr"
)

// The longest texts, in bytes (protocol/queue.md 2).
const (
	textMax = 64 << 10
	// textMaxOld is that of before 2011-08-18.
	textMaxOld = 8 << 10
)

// tooLarge is the error of a text that is too long for its version (protocol/queue.md 9.1).
func (c *call) tooLarge() error {
	if c.r.Version < protocol.Version20110818 {
		return storageerr.MessageTooLarge.With("MaxLimit", strconv.Itoa(textMaxOld))
	}
	return storageerr.RequestBodyTooLarge.With("MaxLimit", strconv.Itoa(textMax))
}

// text reads the text of a message from the body; nil if there is no body.
func (c *call) text() ([]byte, error) {
	body, err := c.body()
	switch {
	case errors.Is(err, storageerr.RequestBodyTooLarge):
		return nil, c.tooLarge()
	case err != nil || len(body) == 0:
		return nil, err
	}
	text, err := parseMessage(body)
	if err != nil {
		return nil, err
	}
	if len(text) > textMax || len(text) > textMaxOld && c.r.Version < protocol.Version20110818 {
		return nil, c.tooLarge()
	}
	return text, nil
}

// putMessage is Put Message (protocol/queue.md 9.1).
func (c *call) putMessage() error {
	ttl, delay, err := c.life()
	if err != nil {
		return err
	}
	q, err := c.queue()
	if err != nil {
		return err
	}
	text, err := c.text()
	if err != nil {
		return err
	}
	if text == nil {
		return errNoMessage
	}
	m, err := c.o.Messages.Put(c.ctx, q, queues.PutOptions{Text: text, TTL: ttl, Delay: delay})
	if err != nil {
		return err
	}
	if c.r.Version < protocol.Version20160531 {
		return c.done(http.StatusCreated)
	}
	c.w.Header()["Content-Type"] = []string{"application/xml"}
	list := []queues.Message{m}
	c.secret().Seal(q, list)
	return c.answerMessages(http.StatusCreated, ofPut, list)
}

// room takes what the texts of an answer may hold, and a window of its document, before they are read. free gives back
// what they do not.
func (c *call) room(limit int) (free func(held int64), err error) {
	share := c.answers.Of(c.r.Account.Name)
	held, err := share.Admit(c.ctx, int64(limit)*textMax+windowMax)
	return func(kept int64) {
		share.Release(max(0, held-kept))
		held = min(held, kept)
	}, err
}

// answerOf answers with the messages that read returns, at most limit.
func (c *call) answerOf(limit int, kind answerKind, read func(q queues.Queue) ([]queues.Message, error)) error {
	q, err := c.queue()
	if err != nil {
		return err
	}
	free, err := c.room(limit)
	if err != nil {
		return err
	}
	defer free(0)
	list, err := read(q)
	if err != nil {
		return err
	}
	held := int64(windowMax)
	for i := range list {
		held += int64(len(list[i].Text))
	}
	free(held)
	c.documentHeaders()
	return c.answerMessages(http.StatusOK, kind, list)
}

// getMessages is Get Messages (protocol/queue.md 9.2).
func (c *call) getMessages() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	hidden, err := c.hidden()
	if err != nil {
		return err
	}
	return c.answerOf(limit, ofGet, func(q queues.Queue) ([]queues.Message, error) {
		list, err := c.o.Messages.Get(c.ctx, q, limit, hidden)
		c.secret().Seal(q, list)
		return list, err
	})
}

// peekMessages is Peek Messages (protocol/queue.md 9.3).
func (c *call) peekMessages() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	return c.answerOf(limit, ofPeek, func(q queues.Queue) ([]queues.Message, error) {
		return c.o.Messages.Peek(c.ctx, c.reader(), q, limit)
	})
}

// secret is what receipts of the account are sealed with.
func (c *call) secret() queues.Secret { return queues.NewSecret(c.r.Account.Key1) }

// message returns the addressed message, and its receipt without the seal. What is no GUID is the id of no message. A
// receipt that is none is refused before the queue is looked for.
func (c *call) message(sealed string) (q queues.Queue, id queues.MessageID, receipt string, err error) {
	id, named := queues.ParseMessageID(c.path.message)
	receipt, err = c.secret().Open(queues.Queue{Account: c.r.Account.Name, Name: c.path.queue}, id, sealed)
	if err != nil && (named || !errors.Is(err, storageerr.PopReceiptMismatch)) {
		return q, id, "", err
	}
	if q, err = c.queue(); err == nil && !named {
		err = storageerr.MessageNotFound
	}
	return q, id, receipt, err
}

// updateMessage is Update Message (protocol/queue.md 9.5). Without a body the text stays.
func (c *call) updateMessage() error {
	sealed, err := c.receipt()
	if err != nil {
		return err
	}
	if _, err := c.required("visibilitytimeout"); err != nil {
		return err
	}
	hidden, err := c.number("visibilitytimeout", 0, 0, visibilityMax)
	if err != nil {
		return err
	}
	q, id, receipt, err := c.message(sealed)
	if err != nil {
		return err
	}
	text, err := c.text()
	if err != nil {
		return err
	}
	m, err := c.o.Messages.Update(c.ctx, q, id, receipt, seconds(hidden), text)
	if err != nil {
		return err
	}
	list := []queues.Message{m}
	c.secret().Seal(q, list)
	h := c.w.Header()
	h["X-Ms-Popreceipt"] = []string{list[0].Receipt}
	h["X-Ms-Time-Next-Visible"] = []string{wire.FormatHTTPTime(m.Visible.Time())}
	return c.done(http.StatusNoContent)
}

// deleteMessage is Delete Message (protocol/queue.md 9.4).
func (c *call) deleteMessage() error {
	sealed, err := c.receipt()
	if err != nil {
		return err
	}
	q, id, receipt, err := c.message(sealed)
	if err != nil {
		return err
	}
	if err := c.o.Messages.Delete(c.ctx, q, id, receipt); err != nil {
		return err
	}
	return c.done(http.StatusNoContent)
}

// clearMessages is Clear Messages (protocol/queue.md 9.6). A receipt means one message: a client that left out the id
// does not lose the others.
func (c *call) clearMessages() error {
	if c.r.Query.Has("popreceipt") {
		return storageerr.InvalidURI
	}
	q, err := c.queue()
	if err != nil {
		return err
	}
	if err := c.o.Messages.Clear(c.ctx, q); err != nil {
		return err
	}
	return c.done(http.StatusNoContent)
}

// never is how the expiry of a message that has none is written (protocol/queue.md 2).
func never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }
