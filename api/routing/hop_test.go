package routing

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

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
		p := startPatience(func() {})
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(c.body)}
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { f.relay(c.w, resp, hop{}, p) })
		p.pause()
	}
	require.Equal(t, relayBytes, rest.Len())
}
