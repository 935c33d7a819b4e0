package storageerr

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/stamp/kv"
)

// Every error that a range answers in place of a command has a code of the protocol, also when it
// is wrapped; other errors have none.
func TestOf(t *testing.T) {
	for err, want := range map[error]Row{
		BlobNotFound:                                BlobNotFound,
		fmt.Errorf("wrapped: %w", BlobNotFound):     BlobNotFound,
		InvalidInput.With("HeaderName", "x"):        InvalidInput,
		kv.ErrBusy:                                  ServerBusy,
		errors.Join(kv.ErrBusy, errors.New("disk")): ServerBusy,
		fmt.Errorf("range 4: %w", kv.ErrUnknown):    OperationTimedOut,
		errors.Join(BlobNotFound, kv.ErrUnknown):    BlobNotFound,
	} {
		e, ok := Of(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, want, e.Row, "%v", err)
	}
	_, ok := Of(errors.New("disk"))
	require.False(t, ok)
}
