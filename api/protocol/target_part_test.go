package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/storageerr"
)

// The target of a part of a batch is that of the batch, with the path of the part: in path style with the account or without.
func TestTargetPart(t *testing.T) {
	for _, c := range []struct{ outer, uri, host, want string }{
		{"/acct?comp=batch", "/acct/c/b", "", "/acct/c/b /c/b "},
		{"/acct?comp=batch", "/acct/c/b?comp=tier", "", "/acct/c/b /c/b comp=tier"},
		{"/acct?comp=batch", "acct/c/b", "", "/acct/c/b /c/b "},
		{"/acct?comp=batch", "/c/b?", "", "/c/b /c/b "},
		{"/acct?comp=batch", "/c/a%2Fb//c", "", "/c/a%2Fb//c /c/a%2Fb//c "},
		{"/acct?comp=batch", "http://127.0.0.1:10000/acct/c/b", "", "/acct/c/b /c/b "},
		{"/acct?comp=batch", "https://proxy/acct/c/b", "x.y", "/acct/c/b /c/b "},
		{"/acct?comp=batch", "/acct/c/b", "acct.blob.z1", "/acct/c/b /c/b "},
		{"/acct?comp=batch", "/acct", "", "/acct /acct "},
		{"/acct?comp=batch", "/", "", "/ / "},
		{"/acct?comp=batch", "/acct/c/b", "acct.queue.z1", "InvalidInput"},
		{"/acct?comp=batch", "/acct/c/b", "other.blob.z1", "InvalidInput"},
		{"/acct?comp=batch", "http://other.blob.z1/c/b", "acct.blob.z1", "InvalidInput"},
		{"/acct?comp=batch", "/acct/c/a b", "", "InvalidInput"},
		{"/acct?comp=batch", "/acct/c/b?a b", "", "InvalidInput"},
		{"/acct?comp=batch", "/acct/c/b", "a b", "InvalidInput"},
		{"/acct?comp=batch", "/acct-secondary/c/b", "", "InsufficientAccountPermissions"},
		{"/acct?comp=batch", "/c/b", "acct-secondary.blob.z1", "InsufficientAccountPermissions"},
		{"/acct?comp=batch", "/acct-secondary/c/b", "other.blob.z1", "InvalidInput"},
		{"/acct-drill?comp=batch", "/acct-drill/c/b", "", "/acct-drill/c/b /c/b "},
		{"http://acct.blob.z1/?comp=batch", "/c/b", "", "/c/b /c/b "},
		{"http://acct.blob.z1/?comp=batch", "/acct/b", "", "/acct/b /acct/b "},
		{"http://acct.blob.z1/?comp=batch", "/c/b", "acct-secondary.blob.z1", "InsufficientAccountPermissions"},
		{"http://acct.blob.z1/?comp=batch", "http://acct.blob.z1/c/b", "", "/c/b /c/b "},
	} {
		outer, err := ParseTarget(geo.Blob, "http", "127.0.0.1:10000", c.outer, "z1")
		require.NoError(t, err)
		got, err := outer.Part(c.uri, c.host)
		if err != nil {
			e, _ := storageerr.Of(err)
			require.Equal(t, c.want, e.Code, "%v", c)
			continue
		}
		require.Equal(t, c.want, got.RawPath+" "+got.Resource+" "+got.RawQuery, "%v", c)
		require.Equal(t, outer.SignedAs(), got.SignedAs())
		require.False(t, got.Secondary)
	}
}
