package auth

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesOfOneHeaderAreOneValue(t *testing.T) {
	h := http.Header{"Content-Language": {" de ", "en"}, "Content-Type": {"\ttext/plain"}}
	require.Equal(t, "de,en", joined(h, "Content-Language"))
	require.Equal(t, "text/plain", joined(h, "Content-Type"))
	require.Empty(t, joined(h, "Content-Encoding"))
}

// A signature has no colon: what is before the last one is the account.
func TestAccountOfAnAuthorization(t *testing.T) {
	a, err := parseAuthorization("SharedKey a:b:c")
	require.NoError(t, err)
	require.Equal(t, authorization{scheme: sharedKey, account: "a:b", signature: "c"}, a)
}
