package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Any bytes are a row of the catalog or an error, and a row that reads is, written
// again, the same row.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"name":"acct","key1":"AAAA","key2":"","redundancy":"RA-GRS","primary":"n","secondary":"s","epoch":1,"created":2,"active":true}`))
	f.Add([]byte(`{"v":1,"name":"cont","epoch":1,"created":2,"modified":3,"metadata":[{"n":"a","v":"b"}],"public":"blob"}`))
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := ParseAccount(b); err == nil {
			out, err := a.Encode()
			require.NoError(t, err)
			again, err := ParseAccount(out)
			require.NoError(t, err)
			require.Equal(t, a, again)
		}
		if c, err := ParseContainer(b); err == nil {
			out, err := c.encode()
			require.NoError(t, err)
			again, err := ParseContainer(out)
			require.NoError(t, err)
			second, err := again.encode()
			require.NoError(t, err)
			require.Equal(t, out, second)
		}
	})
}
