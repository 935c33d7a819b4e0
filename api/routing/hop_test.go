package routing

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// goneClient takes the head of an answer and nothing more.
type goneClient struct{ *httptest.ResponseRecorder }

func (goneClient) Write([]byte) (int, error) { return 0, errors.New("the client is gone") }

// An answer that cannot be relayed to its end breaks the connection off: half an answer must not look like a whole one, and
// for a client that is gone nothing more is read.
func TestRelayBreaksOff(t *testing.T) {
	f := NewForwarder("test", nil, nil)
	defer f.Close()
	rest := strings.NewReader(strings.Repeat("x", 2*relayBytes))
	for _, c := range []struct {
		w    http.ResponseWriter
		body io.Reader
	}{
		{goneClient{httptest.NewRecorder()}, rest},
		{httptest.NewRecorder(), io.MultiReader(strings.NewReader("x"), iotest.ErrReader(io.ErrUnexpectedEOF))},
	} {
		p := startPatience(0, func() {})
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(c.body)}
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { f.relay(c.w, resp, hop{}, p) })
		p.pause()
	}
	require.Equal(t, relayBytes, rest.Len())
}

// A hop whose other end does nothing is given up soon after the request should have been answered, and a request that may take
// long is waited for so long.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for long, want := range map[time.Duration]time.Duration{0: 35 * time.Second, time.Second: 35 * time.Second, 10 * time.Minute: 605 * time.Second} {
			p := startPatience(long, func() {})
			for range 2 { // What comes meanwhile begins it again.
				time.Sleep(want - time.Second)
				synctest.Wait()
				require.False(t, p.over.Load(), long)
				p.resume()
			}
			time.Sleep(want)
			synctest.Wait()
			require.True(t, p.over.Load(), long)
		}
	})
}
