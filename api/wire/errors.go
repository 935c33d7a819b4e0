package wire

import (
	"strings"

	"antipode/services/storageerr"
)

// BadParameter is the error of a query parameter's value.
func BadParameter(name, value, reason string) error {
	return storageerr.InvalidQueryParameter.With("QueryParameterName", name, "QueryParameterValue", value, "Reason", reason)
}

// BadHeader is the error of a header's values.
func BadHeader(name string, values ...string) error {
	return storageerr.InvalidHeaderValue.With("HeaderName", name, "HeaderValue", strings.Join(values, ","))
}
