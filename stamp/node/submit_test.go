package node

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Any bytes are a range, a kind and a command, or an error.
func FuzzParseCommand(f *testing.F) {
	f.Add(appendCommand(nil, testRange, &portableIncrement{}))
	f.Add([]byte{4, 200, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, kind, body, err := parseCommand(b)
		if err == nil {
			require.LessOrEqual(t, len(kind)+len(body)+2, len(b))
		}
	})
}
