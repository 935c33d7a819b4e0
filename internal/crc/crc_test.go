package crc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The checksum is CRC32C as RFC 3720 gives it, whole or in parts: formats outlive this code.
func TestKnownAnswers(t *testing.T) {
	require.EqualValues(t, 0xe3069283, Of([]byte("123456789")))
	require.EqualValues(t, 0x8a9136aa, Of(make([]byte, 32)))
	require.Equal(t, Of([]byte("123456789")), Join(Of([]byte("1234")), []byte("56789")))
}
