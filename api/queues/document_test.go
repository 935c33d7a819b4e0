package queues

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/services/queues"
)

// headed is a connection on which the header of an answer gives the client the time that its length needs, as the
// server does (protocol.BeforeAnswer).
type headed struct {
	*httptest.ResponseRecorder
	request *protocol.Request
	until   time.Time
}

func (h *headed) SetWriteDeadline(t time.Time) error {
	h.until = t
	return nil
}

func (h *headed) WriteHeader(status int) {
	protocol.BeforeAnswer(h, h.request.HTTP)
	h.ResponseRecorder.WriteHeader(status)
}

// The longest list of messages may take as long as its bytes do, whether they are escaped or not, though it has no length
// in its header; a short one has the time of its length.
func TestTimeToTakeMessages(t *testing.T) {
	t.Parallel()
	answer := func(texts int, text string) (*headed, time.Duration) {
		h := &headed{ResponseRecorder: httptest.NewRecorder(), request: &protocol.Request{HTTP: httptest.NewRequest("GET", "/", nil)}}
		list := make([]queues.Message, texts)
		for i := range list {
			list[i].Text = []byte(text)
		}
		began := time.Now()
		c := &call{w: h, r: h.request}
		require.NoError(t, c.answerMessages(200, ofGet, list))
		require.Equal(t, texts, strings.Count(h.Body.String(), "<QueueMessage>"))
		return h, h.until.Sub(began)
	}
	long, within := answer(32, strings.Repeat("\"", 64<<10))
	require.Empty(t, long.Header().Get("Content-Length"))
	require.Greater(t, within, time.Duration(long.Body.Len()/(16<<10))*time.Second)
	short, within := answer(1, "x")
	require.NotEmpty(t, short.Header().Get("Content-Length"))
	require.Less(t, within, protocol.ReceiverStallMax)
}
