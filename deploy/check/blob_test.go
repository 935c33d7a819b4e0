package check_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/require"
)

// throughBoth writes a blob to the account pictures at an address, and reads it at -secondary. shown is what
// `antipodectl account show --output json` printed of it.
func throughBoth(t *testing.T, address, shown string) {
	t.Helper()
	var account struct {
		ConnectionString string `json:"connection_string"`
	}
	require.NoError(t, json.Unmarshal([]byte(shown), &account))
	key := fieldOf(account.ConnectionString, "AccountKey")
	require.NotEmpty(t, key, "a connection string without a key")
	cred, err := azblob.NewSharedKeyCredential("pictures", key)
	require.NoError(t, err)
	client := func(suffix string) *azblob.Client {
		o := &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
		c, err := azblob.NewClientWithSharedKeyCredential("http://"+address+":10000/pictures"+suffix, cred, o)
		require.NoError(t, err)
		return c
	}
	primary, secondary := client(""), client("-secondary")
	const text = "written at the primary"
	until(t, "the blob is written", func(ctx context.Context) error {
		_, err := primary.CreateContainer(ctx, "album", nil)
		if err == nil {
			_, err = primary.UploadBuffer(ctx, "album", "one", []byte(text), nil)
		}
		return err
	})
	until(t, "the blob is read at -secondary", func(ctx context.Context) error {
		answer, err := secondary.DownloadStream(ctx, "album", "one", nil)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(answer.Body)
		require.NoError(t, answer.Body.Close())
		if err == nil {
			require.Equal(t, text, string(got))
		}
		return err
	})
}

// until repeats a step until it succeeds.
func until(t *testing.T, what string, step func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	for {
		err := step(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(t, err, what)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
