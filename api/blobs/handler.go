// Package blobs is the front end of the blob service.
package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// Handler answers blob calls.
type Handler struct{}

// Serve answers one request and returns the name of its operation for metrics.
func (h *Handler) Serve(_ http.ResponseWriter, _ *protocol.Request) (operation string, err error) {
	return "Blob", storageerr.NotImplemented
}
