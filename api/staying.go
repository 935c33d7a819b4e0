package api

import (
	"context"
	"net/http"
	"time"

	"antipode/api/routing"
)

// stayMax is how long a request goes on after its client closed its side of the connection. It is below the time that
// listeners give their handlers to end.
const stayMax = time.Second

// staying returns the request with a context that ends stayMax after that of net/http. A client that has sent its whole
// request may close its side, and reads on: net/http ends the context then, since a client that has left looks the same. On
// a hop the sender waits already. release ends the context, and must follow.
func staying(r *http.Request) (_ *http.Request, release func()) {
	if routing.Forwarded(r) {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(r.Context(), func() { time.AfterFunc(stayMax, cancel) })
	return r.WithContext(ctx), func() {
		stop()
		cancel()
	}
}
