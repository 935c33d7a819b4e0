package objstore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/go-kit/log"
	"github.com/thanos-io/objstore"
	"github.com/thanos-io/objstore/providers/azure"
)

// The provider does what Thanos asks of a store, and keeps an object of as many bytes as BYTES says. CONFIG is the
// provider's configuration. The tests of test/tools set both.
func TestAcceptance(t *testing.T) {
	config, bytes := os.Getenv("CONFIG"), os.Getenv("BYTES")
	if config == "" {
		t.Skip("make tools runs this")
	}
	bucket, err := azure.NewBucket(log.NewNopLogger(), []byte(config), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	objstore.AcceptanceTest(t, bucket)
	size, err := strconv.ParseInt(bytes, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	written, read := sha256.New(), sha256.New()
	content := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{1}), size), written)
	if err := bucket.Upload(t.Context(), "large", content); err != nil {
		t.Fatal(err)
	}
	if err := download(t.Context(), bucket, read); err != nil {
		t.Fatal(err)
	}
	if want, got := fmt.Sprintf("%x", written.Sum(nil)), fmt.Sprintf("%x", read.Sum(nil)); want != got {
		t.Fatalf("wrote %s, read %s", want, got)
	}
}

func download(ctx context.Context, bucket objstore.Bucket, to io.Writer) error {
	r, err := bucket.Get(ctx, "large")
	if err != nil {
		return err
	}
	_, err = io.Copy(to, r)
	if closeErr := r.Close(); err == nil {
		err = closeErr
	}
	return err
}
