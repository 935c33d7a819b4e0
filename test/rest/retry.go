package rest

import (
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// RetryBusy has official clients send again what was answered with 503, and nothing else: nothing happened, as while a range
// elects a leader on a starved machine. A repeated write whose outcome is unknown would hide what the first one did.
func RetryBusy() policy.RetryOptions {
	return policy.RetryOptions{
		MaxRetries: 30, RetryDelay: 50 * time.Millisecond, MaxRetryDelay: time.Second,
		ShouldRetry: func(a *http.Response, _ error) bool { return a != nil && a.StatusCode == http.StatusServiceUnavailable },
	}
}
