// Package queues is the front end of the queue service. Its range exists and is
// shipped; its calls are not built yet and say so.
package queues

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// Serve answers a queue call with 501 in the service's body format.
func Serve(_ http.ResponseWriter, _ *protocol.Request) (operation string, err error) {
	return "Queue", storageerr.NotImplemented
}
