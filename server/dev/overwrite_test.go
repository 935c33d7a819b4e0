package dev

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"antipode/server/location"
	"antipode/stamp/extent"
	"antipode/stamp/node"
)

var overwrittenMiB = flag.Int("overwritten", 0, "how many MiB TestOverwrittenPayloadComesBack puts, through a tenth of that of names: "+
	"10240 (make overwrites) measures the folder and takes some minutes. Zero means a few, and looks at the stores alone")

// besideBytes is what a node may have beside live payload, such as dead chunks, spare files and the log: with 1 GiB of names the
// folder of six nodes stays below 12 GiB.
const besideBytes = 1 << 30

// What is put over the same names comes back at both locations, on every node: with a default grace of a day within five
// minutes, on the disk too. The short run has a short grace, for the sake of time.
func TestOverwrittenPayloadComesBack(t *testing.T) {
	const blobBytes, times = 1 << 20, 10
	names, wait, adjust := 3, time.Minute, func(o *location.Options) { o.CollectGrace = time.Second }
	if *overwrittenMiB > 0 {
		names, wait, adjust = *overwrittenMiB/times, 5*time.Minute, nil
	}
	c := startAdjusted(t, adjust)
	account, _ := cloneClients(t, c, "northacct")
	_, err := account.CreateContainer(t.Context(), "cont", nil)
	require.NoError(t, err)
	for again := range times {
		var clients sync.WaitGroup
		for client := range 4 {
			clients.Go(func() {
				for i := client; i < names; i += 4 {
					body := bytes.Repeat([]byte{byte(again), byte(i), 1, 2}, blobBytes/4)
					blob := account.ServiceClient().NewContainerClient("cont").NewBlockBlobClient(fmt.Sprint("b", i))
					if _, err := blob.Upload(t.Context(), streaming.NopCloser(bytes.NewReader(body)), nil); err != nil {
						t.Errorf("put %d of %d: %v", again, i, err)
						return
					}
				}
			})
		}
		clients.Wait()
	}
	began, live := time.Now(), int64(names*blobBytes)
	came := assert.Eventually(t, func() bool {
		for _, held := range c.held() {
			// The location that is read alone must have all before what it has counts as little.
			if held.Bytes < live || held.Bytes > live*5/4 {
				return false
			}
		}
		return *overwrittenMiB == 0 || folderBytes(t, c.o.Dir) < 6*(live+besideBytes)
	}, wait, 100*time.Millisecond)
	t.Logf("%d MiB put over %d MiB: the folder has %d MiB after %s", names*times, names, folderBytes(t, c.o.Dir)>>20, time.Since(began).Round(time.Second))
	for of, held := range c.held() {
		t.Logf("%s holds %d MiB in %d MiB of %d files, %d spares", of, held.Bytes>>20, held.FileBytes>>20, held.Extents, held.Spares)
	}
	require.True(t, came)
	for i := range names {
		requireBlobIs(t, account, fmt.Sprint("b", i), bytes.Repeat([]byte{times - 1, byte(i), 1, 2}, blobBytes/4))
	}
}

// held is what the chunk stores of all nodes hold.
func (c *Cluster) held() map[string]extent.Stats {
	held := map[string]extent.Stats{}
	for _, l := range c.locations {
		for _, id := range runningStamp(l).Nodes() {
			held[node.Name(l.Location(), id)] = runningStamp(l).Node(id).Extents().Stats()
		}
	}
	return held
}

// folderBytes is what the files of a folder have in them.
func folderBytes(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // Files come and go.
		}
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	}))
	return bytes
}
