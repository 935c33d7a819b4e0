package rest

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"antipode/geo"
)

// Message is a message of a queue as an answer has it. What the answer leaves out is empty.
type Message struct {
	ID           string `xml:"MessageId"`
	Receipt      string `xml:"PopReceipt"`
	DequeueCount int
	Text         string `xml:"MessageText"`
}

// CreateQueue creates a queue; an existing one with the same metadata, which is none, is not an error.
func (c *Client) CreateQueue(ctx context.Context, queue string) error {
	a, err := c.Do(ctx, geo.Queue, Request{Method: http.MethodPut, Path: "/" + queue})
	return expect(a, err, "create queue "+queue)
}

// PutMessage puts a message that never expires.
func (c *Client) PutMessage(ctx context.Context, queue, text string) (Message, Answer, error) {
	var body bytes.Buffer
	body.WriteString("<QueueMessage><MessageText>")
	if err := xml.EscapeText(&body, []byte(text)); err != nil {
		return Message{}, Answer{}, fmt.Errorf("rest: message: %w", err)
	}
	body.WriteString("</MessageText></QueueMessage>")
	list, a, err := c.messages(ctx, Request{
		Method: http.MethodPost, Path: "/" + queue + "/messages", Query: "messagettl=-1", Body: body.Bytes(),
	})
	if err != nil || !a.OK() {
		return Message{}, a, err
	}
	if len(list) != 1 {
		return Message{}, a, fmt.Errorf("rest: %d messages in the answer to a put: %.200q", len(list), a.Body)
	}
	return list[0], a, nil
}

// GetMessages takes up to limit messages and hides them for some seconds.
func (c *Client) GetMessages(ctx context.Context, queue string, limit int, hide time.Duration) ([]Message, Answer, error) {
	return c.messages(ctx, Request{
		Method: http.MethodGet, Path: "/" + queue + "/messages",
		Query: fmt.Sprintf("numofmessages=%d&visibilitytimeout=%d", limit, int(hide.Seconds())),
	})
}

// PeekMessages reads up to limit visible messages.
func (c *Client) PeekMessages(ctx context.Context, queue string, limit int) ([]Message, Answer, error) {
	return c.messages(ctx, Request{
		Method: http.MethodGet, Path: "/" + queue + "/messages", Query: fmt.Sprintf("numofmessages=%d&peekonly=true", limit),
	})
}

func (c *Client) messages(ctx context.Context, r Request) ([]Message, Answer, error) {
	a, err := c.Do(ctx, geo.Queue, r)
	if err != nil || !a.OK() {
		return nil, a, err
	}
	var doc struct {
		XMLName  xml.Name  `xml:"QueueMessagesList"`
		Messages []Message `xml:"QueueMessage"`
	}
	if err := xml.Unmarshal(a.Body, &doc); err != nil {
		return nil, a, fmt.Errorf("rest: messages: %w in %.200q", err, a.Body)
	}
	return doc.Messages, a, nil
}

// DeleteMessage deletes the message that a receipt names.
func (c *Client) DeleteMessage(ctx context.Context, queue string, m Message) (Answer, error) {
	return c.Do(ctx, geo.Queue, Request{Method: http.MethodDelete, Path: messagePath(queue, m), Query: receiptQuery(m)})
}

// HideMessage makes the message that a receipt names visible after some seconds, and returns its new receipt.
func (c *Client) HideMessage(ctx context.Context, queue string, m Message, hide time.Duration) (receipt string, a Answer, err error) {
	a, err = c.Do(ctx, geo.Queue, Request{
		Method: http.MethodPut, Path: messagePath(queue, m), Query: receiptQuery(m) + "&visibilitytimeout=" + strconv.Itoa(int(hide.Seconds())),
	})
	return a.Header.Get("x-ms-popreceipt"), a, err
}

// CountMessages reads how many messages a queue has.
func (c *Client) CountMessages(ctx context.Context, queue string) (int, Answer, error) {
	a, err := c.Do(ctx, geo.Queue, Request{Method: http.MethodGet, Path: "/" + queue, Query: "comp=metadata"})
	if err != nil || !a.OK() {
		return 0, a, err
	}
	n, err := strconv.Atoi(a.Header.Get("x-ms-approximate-messages-count"))
	return n, a, err
}

func messagePath(queue string, m Message) string { return "/" + queue + "/messages/" + m.ID }

func receiptQuery(m Message) string { return "popreceipt=" + url.QueryEscape(m.Receipt) }
