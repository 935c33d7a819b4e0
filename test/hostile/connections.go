package hostile

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"

	"antipode/geo"
)

// TakeConnections adds n clients for each service that announce a body, send nothing of it, and keep the connection for as
// long as the server leaves it to them, refused or not. Every second one signs with a wrong key, and is refused at once.
func (h *Crowd) TakeConnections(n int) {
	stranger := *h.Client
	stranger.Key = []byte("not the key of this")
	for kind, upload := range map[string]struct {
		service      geo.Service
		method, path string
		header       map[string]string
	}{
		"blob, kept connection":  {geo.Blob, http.MethodPut, "/" + longContainer + "/kept", map[string]string{"x-ms-blob-type": "BlockBlob"}},
		"queue, kept connection": {geo.Queue, http.MethodPost, "/" + longQueue + "/messages", nil},
		"table, kept connection": {geo.Table, http.MethodPost, "/" + heavyTable, jsonHeader()},
	} {
		for i := range n {
			signer := h.Client
			if i%2 == 1 {
				signer = &stranger
			}
			h.add(1, kind, func(_ context.Context, c net.Conn) string {
				head, err := signedHead(signer, upload.service, upload.method, upload.path, messageBytes, upload.header)
				if err != nil {
					return err.Error()
				}
				if _, err := io.WriteString(c, head); err != nil {
					return ""
				}
				r := bufio.NewReader(c)
				status := statusLine(r)
				_, _ = io.Copy(io.Discard, r) // Until the server ends it.
				return status
			})
		}
	}
}
