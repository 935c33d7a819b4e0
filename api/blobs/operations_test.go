package blobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/operation"
	"antipode/geo"
)

// Every row of the table that is built has a handler, and every handler a row. The calls of
// the service itself are package accounts'.
func TestHandlersAreTheBuiltRows(t *testing.T) {
	t.Parallel()
	built := map[string]bool{}
	for _, o := range operation.Of(geo.Blob) {
		if o.Built && o.On != operation.Service {
			built[o.Name] = true
			require.NotNil(t, handlers[o.Name], o.Name)
		}
	}
	require.Len(t, handlers, len(built))
}
