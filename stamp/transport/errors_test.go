package transport

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// An error of gRPC that stands for none of ours keeps its code for programs, and has the words alone that say what happened.
func TestForeignErrorsAreWorded(t *testing.T) {
	err := fromStatus(status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`))
	require.Equal(t, "dial tcp 127.0.0.1:1: connect: connection refused", err.Error())
	require.Equal(t, codes.Unavailable, status.Code(err))
}
