package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"antipode/geo"
	"antipode/test/rest"
)

// What the hostile account holds, made by Prepare.
const (
	heavyTable      = "heavy"
	heavyRows       = 1500
	heavyProperties = 250
	longContainer   = "long"
	longBlob        = "long"
	longBytes       = 32 << 20
	longQueue       = "long"
	longMessages    = 32
	longText        = 64 << 10
)

const (
	dripEvery    = time.Second            // between two bytes of a slow sender or reader
	wrongEvery   = 100 * time.Millisecond // between two requests with a wrong signature
	hugeBody     = 4000 << 20             // announced by slow senders, in bytes
	tableBodyMax = 4 << 20                // announced to the table service, in bytes
	filterBytes  = 55 << 10               // of a costly filter
	paddingBytes = 32 << 10               // of the headers of a request with a wrong signature
	messageBytes = 512 << 10              // announced to the queue service, in bytes
)

// Prepare makes what the attacks read: a table of 1,500 entities of 250 properties, a
// long blob, a queue of long messages and queues for policies, in the hostile account.
func (h *Crowd) Prepare(ctx context.Context) error {
	if err := h.Client.CreateTable(ctx, heavyTable); err != nil {
		return err
	}
	for from := 0; from < heavyRows; from += 100 {
		var ops []rest.Operation
		for i := from; i < from+100; i++ {
			e := rest.Entity{"PartitionKey": "f", "RowKey": fmt.Sprintf("%06d", i)}
			for p := range heavyProperties {
				e[fmt.Sprintf("p%03d", p)] = p
			}
			ops = append(ops, rest.Operation{Method: http.MethodPut, Entity: e})
		}
		if _, a, err := h.Client.Transact(ctx, heavyTable, ops); err != nil || !a.OK() {
			return fmt.Errorf("prepare entities: %v, %w", a, err)
		}
	}
	if err := h.Client.CreateContainer(ctx, longContainer); err != nil {
		return err
	}
	a, err := h.Client.PutBlob(ctx, longContainer, longBlob, make([]byte, longBytes))
	if err == nil && !a.OK() {
		err = fmt.Errorf("prepare blob: %v", a)
	}
	if err != nil {
		return err
	}
	if err := h.prepareQueue(ctx); err != nil {
		return err
	}
	return h.preparePolicies(ctx)
}

func (h *Crowd) prepareQueue(ctx context.Context) error {
	if err := h.Client.CreateQueue(ctx, longQueue); err != nil {
		return err
	}
	for range longMessages {
		// What is escaped is six times as long in an answer.
		if _, a, err := h.Client.PutMessage(ctx, longQueue, strings.Repeat("\"", longText)); err != nil || !a.OK() {
			return fmt.Errorf("prepare messages: %v, %w", a, err)
		}
	}
	return nil
}

// AnnounceMessages adds n clients that announce messages as long as there are, and as many that send one byte by byte.
func (h *Crowd) AnnounceMessages(n int) {
	head := func() (string, error) {
		return h.head(geo.Queue, http.MethodPost, "/"+longQueue+"/messages", messageBytes, nil)
	}
	h.add(n, "queue, announced body", func(_ context.Context, c net.Conn) string {
		head, err := head()
		return send(c, head, err)
	})
	h.add(n, "queue, slow sender", func(ctx context.Context, c net.Conn) string {
		head, err := head()
		return drip(ctx, c, head, err)
	})
}

// PeekSlowly adds n clients that ask for 32 long messages and take a byte each second.
func (h *Crowd) PeekSlowly(n int) {
	h.add(n, "queue, slow reader", func(ctx context.Context, c net.Conn) string {
		head, err := h.head(geo.Queue, http.MethodGet, "/"+longQueue+"/messages?peekonly=true&numofmessages=32", 0, nil)
		return sip(ctx, c, head, err)
	})
}

// Announce adds n clients that announce bodies of 4 MiB to the table service and send
// nothing of them.
func (h *Crowd) Announce(n int) {
	h.add(n, "table, announced body", func(_ context.Context, c net.Conn) string {
		head, err := h.head(geo.Table, http.MethodPost, "/"+heavyTable, tableBodyMax, jsonHeader())
		return send(c, head, err)
	})
}

// AnnounceBlobs adds n clients that announce bodies of 4000 MiB to the blob service and
// send one byte each second.
func (h *Crowd) AnnounceBlobs(n int) {
	h.add(n, "blob, slow sender", func(ctx context.Context, c net.Conn) string {
		head, err := h.head(geo.Blob, http.MethodPut, "/"+longContainer+"/drip", hugeBody, map[string]string{"x-ms-blob-type": "BlockBlob"})
		return drip(ctx, c, head, err)
	})
}

// Drip adds n clients that send an entity byte by byte.
func (h *Crowd) Drip(n int) {
	h.add(n, "table, slow sender", func(ctx context.Context, c net.Conn) string {
		head, err := h.head(geo.Table, http.MethodPost, "/"+heavyTable, tableBodyMax, jsonHeader())
		return drip(ctx, c, head, err)
	})
}

// ReadSlowly adds n clients that ask for a page of the heavy table, and as many that ask
// for a long blob, and take a byte each second.
func (h *Crowd) ReadSlowly(n int) {
	h.add(n, "table, slow reader", func(ctx context.Context, c net.Conn) string {
		head, err := h.head(geo.Table, http.MethodGet, "/"+heavyTable+"()", 0, jsonHeader())
		return sip(ctx, c, head, err)
	})
	h.add(n, "blob, slow reader", func(ctx context.Context, c net.Conn) string {
		head, err := h.head(geo.Blob, http.MethodGet, "/"+longContainer+"/"+longBlob, 0, nil)
		return sip(ctx, c, head, err)
	})
}

// FilterCostly adds n clients that ask with a filter of 55 KB that matches nothing, again
// and again.
func (h *Crowd) FilterCostly(n int) {
	filter := "PartitionKey eq 'f' and (zz eq 1" + strings.Repeat(" or zz eq 1", (filterBytes-32)/len(" or zz eq 1")) + ")"
	query := "?timeout=30&$filter=" + url.QueryEscape(filter)
	h.add(n, "table, costly filter", func(_ context.Context, c net.Conn) string {
		head, err := h.head(geo.Table, http.MethodGet, "/"+heavyTable+"()"+query, 0, jsonHeader())
		return send(c, head, err)
	})
}

// SignWrongly adds n clients that send 32 KiB of headers with a wrong signature of the
// given account, again and again on one connection.
func (h *Crowd) SignWrongly(n int, victim *rest.Client) {
	wrong := *victim
	wrong.Key = []byte("not the key")
	h.add(n, "table, wrong signature", func(ctx context.Context, c net.Conn) string {
		r := bufio.NewReader(c)
		status := ""
		for ctx.Err() == nil {
			head, err := signedHead(&wrong, geo.Table, http.MethodGet, "/Tables", 0,
				map[string]string{"Accept": "application/json", "x-ms-meta-padding": strings.Repeat("x", paddingBytes)})
			if err != nil {
				return err.Error()
			}
			if _, err := io.WriteString(c, head); err != nil {
				return status
			}
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				return status
			}
			status = resp.Status
			_, err = io.Copy(io.Discard, resp.Body)
			if closeErr := resp.Body.Close(); err != nil || closeErr != nil || resp.Close {
				return status
			}
			pause(ctx, wrongEvery)
		}
		return status
	})
}

// send writes a head and waits for whatever the server makes of it.
func send(c net.Conn, head string, err error) string {
	if err != nil {
		return err.Error()
	}
	if _, err := io.WriteString(c, head); err != nil {
		return ""
	}
	r := bufio.NewReader(c)
	status := statusLine(r)
	if resp := strings.HasPrefix(status, "200"); resp {
		_, _ = io.CopyN(io.Discard, r, 1<<10) // Enough of an answer; the connection is given up.
	}
	return status
}

// drip writes a head, then a byte each second until the server has had enough.
func drip(ctx context.Context, c net.Conn, head string, err error) string {
	if err != nil {
		return err.Error()
	}
	answer := make(chan string, 1)
	go func() { answer <- statusLine(bufio.NewReader(c)) }()
	defer func() { _ = c.Close() }()
	for next := head; ; next = " " {
		if _, err := io.WriteString(c, next); err != nil {
			_ = c.Close()
			return <-answer
		}
		select {
		case status := <-answer:
			return status
		case <-time.After(dripEvery):
		case <-ctx.Done():
			_ = c.Close()
			return <-answer
		}
	}
}

// sip writes a head and takes a byte of the answer each second.
func sip(ctx context.Context, c net.Conn, head string, err error) string {
	if err != nil {
		return err.Error()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		if err := tcp.SetReadBuffer(4 << 10); err != nil {
			return err.Error()
		}
	}
	if _, err := io.WriteString(c, head); err != nil {
		return ""
	}
	one := make([]byte, 1)
	taken := 0
	for ctx.Err() == nil {
		if _, err := c.Read(one); err != nil {
			break
		}
		taken++
		pause(ctx, dripEvery)
	}
	if taken == 0 {
		return ""
	}
	return "read slowly"
}

func jsonHeader() map[string]string {
	return map[string]string{"Accept": "application/json;odata=nometadata", "Content-Type": "application/json"}
}
