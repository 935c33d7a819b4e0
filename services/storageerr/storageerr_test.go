package storageerr

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/stamp/kv"
)

// A copy is answered with the status of its source where the client can do something about that, and with the source's words.
func TestCopySourceRefused(t *testing.T) {
	for _, c := range []struct{ of, status int }{
		{400, 400}, {401, 401}, {403, 403}, {404, 404}, {409, 409}, {412, 412}, {416, 416}, {499, 499}, {503, 503}, {500, 500}, {501, 500}, {502, 500}, {200, 500}, {302, 500}, {0, 500},
	} {
		e := CopySourceRefused(c.of, "SomeCode", "Some words.")
		require.Equal(t, Row{c.status, "CannotVerifyCopySource", "Some words."}, e.Row)
		require.Equal(t, []Detail{
			{"CopySourceStatusCode", fmt.Sprint(c.of)}, {"CopySourceErrorCode", "SomeCode"}, {"CopySourceErrorMessage", "Some words."},
		}, e.Details)
	}
	e := CopySourceRefused(500, "", "")
	require.Equal(t, CannotVerifyCopySource, e.Row)
	require.Equal(t, []Detail{{"CopySourceStatusCode", "500"}}, e.Details)
}

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
