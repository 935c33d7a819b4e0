package listen

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The service answers a request that net/http refuses before a handler sees it, on a new connection and on a kept
// one. An answer of a handler is left alone, whatever its status.
func TestUnreadRequestIsAnsweredByTheService(t *testing.T) {
	s, err := Open([]Listener{{
		Addr: "127.0.0.1:0", What: "test",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "the handler's", http.StatusBadRequest) }),
		Unread: func(status int) []byte {
			return fmt.Appendf(nil, "HTTP/1.1 %d x\r\nContent-Length: 11\r\nConnection: close\r\n\r\nthe service", status)
		},
	}}, "nothing", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	const good = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	for bad, status := range map[string]int{
		"GET /a%zz HTTP/1.1\r\nHost: x\r\n\r\n":                                       400,
		"GET / HTTP/1.1\r\nHost: x y\r\n\r\n":                                         400,
		"GET / HTTP/1.1\r\n\r\n":                                                      400,
		"GET / HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n":                              400,
		"GET / HTTP/9.1\r\nHost: x\r\n\r\n":                                           505,
		"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n":                501,
		"GET / HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\n\r\n":                        417,
		"GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("x", 80<<10) + "\r\n\r\n": 431,
	} {
		for _, kept := range []bool{false, true} {
			c, err := net.Dial("tcp", s.Addrs()[0].String())
			require.NoError(t, err)
			r := bufio.NewReader(c)
			answer := func(request string) string {
				_, err := io.WriteString(c, request)
				require.NoError(t, err)
				resp, err := http.ReadResponse(r, nil)
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				return fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(body)))
			}
			if kept {
				require.Equal(t, "400 the handler's", answer(good))
			}
			require.Equal(t, fmt.Sprint(status, " the service"), answer(bad))
			_, err = r.ReadByte()
			require.Error(t, err, "the connection ends")
			require.NoError(t, c.Close())
		}
	}
}
