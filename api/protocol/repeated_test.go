package protocol

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// A header that takes one value is refused where it came twice, the first by its name
// where there are several; headers that may come twice are not.
func TestCheckRepeated(t *testing.T) {
	require.NoError(t, CheckRepeated(http.Header{
		"X-Ms-Version": {"a"}, "X-Ms-Meta-A": {"a", "b"}, "X-Ms-Client-Request-Id": {"a", "b"}, "Accept": {"a", "b"}, "If-Match": {"a", "b"},
	}))
	for name, h := range map[string]http.Header{
		"x-ms-version": {"X-Ms-Version": {"a", "a"}}, "content-md5": {"Content-Md5": {"a", "b"}},
		"content-type": {"Content-Type": {"a", "b"}}, "range": {"Range": {"bytes=0-1", "bytes=2-3"}},
		"x-ms-blob-type": {"X-Ms-Version": {"a", "b"}, "X-Ms-Blob-Type": {"a", "b"}},
	} {
		err := CheckRepeated(h)
		require.ErrorIs(t, err, storageerr.InvalidHeaderValue)
		e, _ := storageerr.Of(err)
		require.Equal(t, name, e.Details[0].Value)
	}
}
