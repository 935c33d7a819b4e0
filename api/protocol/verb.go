package protocol

import (
	"net/http"

	"antipode/services/storageerr"
)

// CheckVerb refuses a method that no resource of the protocol has (protocol/blob.md 22.1,
// protocol/table.md 17). One that is known and does not fit its resource is another fault:
// 405.
func CheckVerb(method string) error {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch,
		http.MethodOptions, "MERGE":
		return nil
	}
	return storageerr.InvalidHTTPVerb
}
