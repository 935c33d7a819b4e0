package transport

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// An error of gRPC that stands for none of ours keeps its code for programs, and has the words alone that say what happened.
func TestForeignErrorsAreWorded(t *testing.T) {
	for text, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: "dial tcp 127.0.0.1:1: connect: connection refused",
		`connection error: desc = "transport: authentication handshake failed: context deadline exceeded"`:             "authentication handshake failed: context deadline exceeded",
		"error reading from server: EOF": "error reading from server: EOF",
	} {
		err := fromStatus(status.Error(codes.Unavailable, text))
		require.Equal(t, want, err.Error())
		require.Equal(t, codes.Unavailable, status.Code(err))
	}
}
