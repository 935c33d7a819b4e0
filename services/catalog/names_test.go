package catalog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// Names of containers and queues: the rules of protocol/blob.md 1.3 and protocol/queue.md 2, by table.
func TestValidateName(t *testing.T) {
	for _, name := range []string{"abc", "a-b", "0a9", strings.Repeat("x", 63)} {
		require.NoError(t, ValidateName(name), name)
	}
	for _, name := range []string{"", "ab", strings.Repeat("x", 64)} {
		require.ErrorIs(t, ValidateName(name), storageerr.NameLengthOutOfRange, name)
	}
	for _, name := range []string{"Abc", "a_b", "-ab", "ab-", "a--b", "a.b", "aäb", "$web", "a b"} {
		require.ErrorIs(t, ValidateName(name), storageerr.InvalidResourceName, name)
	}
}
