package stamp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/ranges"
)

// named is a command that only has a kind.
type named struct{ ranges.Portable }

func (named) Kind() string   { return "increment" }
func (named) Encode() []byte { return nil }

// Any bytes are a range, a kind and a command, or an error.
func FuzzParseCommand(f *testing.F) {
	f.Add(appendCommand(nil, geo.FirstRange(geo.Table), named{}))
	f.Add([]byte{4, 200, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, kind, body, err := parseCommand(b)
		if err == nil {
			require.LessOrEqual(t, len(kind)+len(body)+2, len(b))
		}
	})
}
