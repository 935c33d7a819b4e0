package api_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/geo"
)

// A request that cannot be read is answered as any other error: with a request id, a code and the document of the service,
// by a location, which counts it, and by a gateway.
func TestUnread(t *testing.T) {
	t.Parallel()
	north := newFrontEnd(t, api.Options{Location: "north"})
	for _, f := range []*frontEnd{north, newFrontEnd(t, api.Options{Locations: []geo.Location{"north"}})} {
		for status, code := range map[int]string{
			400: "InvalidUri", 417: "InvalidHeaderValue", 431: "InvalidHeaderValue", 501: "NotImplemented", 503: "ServerBusy", 505: "InvalidInput",
		} {
			for service, document := range map[geo.Service]string{geo.Blob: "<Error>", geo.Queue: "<Error>", geo.Table: "<error"} {
				resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(f.Unread(service, status))), nil)
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, status, resp.StatusCode)
				require.True(t, resp.Close)
				require.Equal(t, code, resp.Header.Get("x-ms-error-code"))
				require.Len(t, resp.Header.Get("x-ms-request-id"), 36)
				require.Contains(t, string(body), document)
				require.Contains(t, string(body), code)
			}
		}
	}
	north.mu.Lock()
	defer north.mu.Unlock()
	require.Equal(t, 3, north.counts["Unknown 400"])
}
