package test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Four uploads of 256 MiB at once, two as one put and two in blocks of 4 MiB, grow the
// server's resident memory by 128 MiB at most, with shipping on.
// It holds invariant 8.
//
// Capability: Clients: Bounded memory of uploads.
func TestUploadMemory(t *testing.T) {
	const (
		length, blockLength = 256 << 20, 4 << 20
		growthMax           = 128 << 20
	)
	p := startDev(t)
	ctx, cancel := contextFor(t, 5*time.Minute)
	defer cancel()
	unhurried := *p.HTTP // A put of 256 MiB may take more than the minute that a request has there.
	unhurried.Timeout = 0
	p.HTTP = &unhurried
	client := blobClient(t, p, pathStyle, false)
	_, err := client.CreateContainer(ctx, "large", nil)
	require.NoError(t, err)
	block := content(blockLength)
	before := resident(t, p.PID(), "VmRSS")
	require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0)) // Peak starts again.

	g, ctx := errgroup.WithContext(ctx)
	for i := range 2 {
		g.Go(func() error {
			body := &repeated{unit: block, length: length}
			_, err := client.ServiceClient().NewContainerClient("large").NewBlockBlobClient(fmt.Sprint("put", i)).
				Upload(ctx, streaming.NopCloser(body), nil)
			return err
		})
		g.Go(func() error {
			b := client.ServiceClient().NewContainerClient("large").NewBlockBlobClient(fmt.Sprint("blocks", i))
			var ids []string
			for n := range length / blockLength {
				id := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%04d", n))
				ids = append(ids, id)
				if _, err := b.StageBlock(ctx, id, streaming.NopCloser(bytes.NewReader(block)), nil); err != nil {
					return err
				}
			}
			_, err := b.CommitBlockList(ctx, ids, nil)
			return err
		})
	}
	require.NoError(t, g.Wait())
	peak := resident(t, p.PID(), "VmHWM")
	t.Logf("resident before %d MiB, at most %d MiB", before>>20, peak>>20)
	require.LessOrEqual(t, peak-before, int64(growthMax))

	for _, name := range []string{"put0", "blocks1"} {
		got, err := client.DownloadStream(t.Context(), "large", name, nil)
		require.NoError(t, err)
		want := &repeated{unit: block, length: length}
		require.True(t, sameBytes(t, want, got.Body), name)
		require.NoError(t, got.Body.Close())
	}
}

func sameBytes(t *testing.T, want, got io.Reader) bool {
	t.Helper()
	a, b := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, err := io.ReadFull(want, a)
		m, gotErr := io.ReadFull(got, b)
		if !bytes.Equal(a[:n], b[:m]) {
			return false
		}
		if err != nil || gotErr != nil {
			require.Equal(t, err, gotErr)
			return true
		}
	}
}

// resident is a line of the process's memory in /proc, in bytes.
func resident(t *testing.T, pid int, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), field+":")
	require.True(t, found, "%s", status)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kib << 10
}

// repeated is a body of length bytes that repeats unit.
type repeated struct {
	unit        []byte
	length, off int64
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.off == r.length {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.length-r.off)]
	n := copy(p, r.unit[r.off%int64(len(r.unit)):])
	r.off += int64(n)
	return n, nil
}

// Seek implements io.Seeker as the SDK uses it: to the ends.
func (r *repeated) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		r.off = off
	case io.SeekEnd:
		r.off = r.length + off
	default:
		r.off += off
	}
	return r.off, nil
}
