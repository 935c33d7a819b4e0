package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"
)

const (
	// answerWait bounds one request. The server's own limit is 30 s.
	answerWait = 40 * time.Second
	readBuffer = 64 << 10
	// answerBytesMax bounds a body held in memory.
	answerBytesMax = 16 << 20
)

// errAnswer means that the server's answer could not be read; the connection is
// of no use then.
var errAnswer = errors.New("unreadable answer")

// answer is one response. Body is valid until the connection's next call.
type answer struct {
	status int
	body   []byte
	// counted is how many messages a queue has, where the answer says so.
	counted int
	// next is the query options that ask for the next page; empty if there is none.
	next string
	// copied is the status of a copy; empty if the answer is of none.
	copied string
	// wanted is the status that the call names.
	wanted int
}

// conn is one kept-alive connection. It is not safe for concurrent use.
type conn struct {
	address string
	net     net.Conn
	r       *bufio.Reader
	body    []byte
	// counted is the number of messages of the answer that is being read, next its continuation and copied the status
	// of a copy.
	counted      int
	next, copied string
}

// do writes the bytes of one request and reads the answer. After an error the
// connection is closed, and the next call dials again.
func (c *conn) do(ctx context.Context, request []byte, now time.Time) (answer, error) {
	if c.net == nil {
		d := net.Dialer{Timeout: 5 * time.Second}
		nc, err := d.DialContext(ctx, "tcp", c.address)
		if err != nil {
			return answer{}, err
		}
		c.net = nc
		if c.r == nil {
			c.r = bufio.NewReaderSize(nc, readBuffer)
		}
		c.r.Reset(nc)
	}
	a, err := c.exchange(request, now)
	if err != nil {
		c.close()
	}
	return a, err
}

func (c *conn) exchange(request []byte, now time.Time) (answer, error) {
	if err := c.net.SetDeadline(now.Add(answerWait)); err != nil {
		return answer{}, err
	}
	if _, err := c.net.Write(request); err != nil {
		return answer{}, err
	}
	status, err := c.readStatus()
	if err != nil {
		return answer{}, err
	}
	c.counted, c.next, c.copied = 0, "", ""
	length, chunked, closing, err := c.readHeader()
	if err != nil {
		return answer{}, err
	}
	c.body = c.body[:0]
	switch {
	case chunked:
		err = c.readChunks()
	case length > 0 && status != 304:
		err = c.readBody(length)
	}
	if err != nil {
		return answer{}, err
	}
	if closing {
		c.close()
	}
	return answer{status: status, body: c.body, counted: c.counted, next: c.next, copied: c.copied}, nil
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close()
		c.net = nil
	}
}

// readLine returns a line without its end.
func (c *conn) readLine() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

func (c *conn) readStatus() (int, error) {
	line, err := c.readLine()
	if err != nil {
		return 0, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, fmt.Errorf("%w: begins %.40q", errAnswer, line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, fmt.Errorf("%w: status %.40q", errAnswer, line)
	}
	return status, nil
}

// readHeader reads the header fields, of which only the framing, the number of messages, a continuation and the status
// of a copy matter.
func (c *conn) readHeader() (length int, chunked, closing bool, err error) {
	for {
		line, err := c.readLine()
		if err != nil {
			return 0, false, false, err
		}
		if len(line) == 0 {
			return length, chunked, closing, nil
		}
		if value, ok := field(line, "content-length"); ok {
			length, err = strconv.Atoi(string(value))
			if err != nil || length < 0 || length > answerBytesMax {
				return 0, false, false, fmt.Errorf("%w: %.60q", errAnswer, line)
			}
		} else if value, ok := field(line, "transfer-encoding"); ok {
			chunked = bytes.EqualFold(value, []byte("chunked"))
		} else if value, ok := field(line, "connection"); ok {
			closing = bytes.EqualFold(value, []byte("close"))
		} else if value, ok := field(line, "x-ms-approximate-messages-count"); ok {
			if c.counted, err = strconv.Atoi(string(value)); err != nil {
				return 0, false, false, fmt.Errorf("%w: %.60q", errAnswer, line)
			}
		} else if value, ok := field(line, "x-ms-continuation-nextpartitionkey"); ok {
			c.next += "&NextPartitionKey=" + url.QueryEscape(string(value))
		} else if value, ok := field(line, "x-ms-continuation-nextrowkey"); ok {
			c.next += "&NextRowKey=" + url.QueryEscape(string(value))
		} else if value, ok := field(line, "x-ms-copy-status"); ok {
			c.copied = string(value)
		}
	}
}

// field returns the value of the header field if it has this lower-case name.
func field(line []byte, name string) ([]byte, bool) {
	if len(line) <= len(name) || line[len(name)] != ':' {
		return nil, false
	}
	for i := range len(name) {
		if line[i]|0x20 != name[i] && line[i] != name[i] {
			return nil, false
		}
	}
	return bytes.TrimSpace(line[len(name)+1:]), true
}

// readBody appends n bytes to body.
func (c *conn) readBody(n int) error {
	at := len(c.body)
	if at+n > answerBytesMax {
		return fmt.Errorf("%w: more than %d bytes", errAnswer, answerBytesMax)
	}
	if cap(c.body) < at+n {
		c.body = append(make([]byte, 0, 2*(at+n)), c.body...)
	}
	c.body = c.body[:at+n]
	_, err := io.ReadFull(c.r, c.body[at:])
	return err
}

func (c *conn) readChunks() error {
	for {
		line, err := c.readLine()
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return fmt.Errorf("%w: chunk size %.20q", errAnswer, line)
		}
		if err := c.readBody(int(n)); err != nil {
			return err
		}
		if line, err = c.readLine(); err != nil {
			return err
		}
		if len(line) != 0 {
			return fmt.Errorf("%w: chunk of %d bytes ends %.20q", errAnswer, n, line)
		}
		if n == 0 {
			return nil
		}
	}
}
