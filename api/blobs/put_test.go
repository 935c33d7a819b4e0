package blobs

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc64"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
)

// Bodies of every kind come back as they went in, with the same ETag and hashes from
// Put, Get and Head; those up to the inline limit touch no extent, longer ones take
// one chunk a MiB.
func TestPutGet(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, n := range []int{0, 1, 1 << 10, 16 << 10, 16<<10 + 1, 1 << 20, 1<<20 + 1, 3<<20 - 1, 8 << 20} {
		path := fmt.Sprintf("/cont/dir/blob-%d", n)
		body := content(n, 1)
		before := r.payload.puts.Load()
		a := r.put(path, body)
		require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
		require.Equal(t, chunksOf(n), r.payload.puts.Load()-before)
		require.Equal(t, md5Of(body), a.header.Get("Content-MD5"))
		require.NotEmpty(t, a.header.Get("x-ms-content-crc64"))
		require.Equal(t, "false", a.header.Get("x-ms-request-server-encrypted"))

		get := r.get(path)
		require.Equal(t, http.StatusOK, get.status)
		require.True(t, bytes.Equal(body, get.body))
		head := r.do(http.MethodHead, path, nil)
		require.Equal(t, http.StatusOK, head.status)
		require.Empty(t, head.body)
		for _, x := range []answer{get, head} {
			require.Equal(t, a.header.Get("ETag"), x.header.Get("ETag"))
			require.Equal(t, a.header.Get("Last-Modified"), x.header.Get("Last-Modified"))
			require.Equal(t, a.header.Get("Last-Modified"), x.header.Get("x-ms-creation-time"))
			require.Equal(t, fmt.Sprint(n), x.header.Get("Content-Length"))
			require.Equal(t, md5Of(body), x.header.Get("Content-MD5"))
			require.Equal(t, "BlockBlob", x.header.Get("x-ms-blob-type"))
			require.Equal(t, "application/octet-stream", x.header.Get("Content-Type"))
			require.Equal(t, "bytes", x.header.Get("Accept-Ranges"))
			require.Equal(t, "unlocked", x.header.Get("x-ms-lease-status"))
		}
		require.Equal(t, "Hot", head.header.Get("x-ms-access-tier"))
		require.Equal(t, "true", head.header.Get("x-ms-access-tier-inferred"))
	}
}

// Content properties, metadata and the tier are kept and answered; an overwrite
// replaces them all but the tier.
func TestPropertiesAndMetadata(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	a := r.put("/cont/b", []byte("x"),
		"x-ms-blob-content-type", "text/x", "Content-Type", "ignored/plain", "Content-Encoding", "gzip",
		"x-ms-blob-content-language", "de", "x-ms-blob-content-disposition", "inline", "Cache-Control", "no-store",
		"x-ms-meta-Key_1", " v 1 ", "x-ms-meta-empty", "", "x-ms-access-tier", "Cool")
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
	for _, x := range []answer{r.get("/cont/b", "Accept-Encoding", "identity"), r.do(http.MethodHead, "/cont/b", nil)} {
		require.Equal(t, "text/x", x.header.Get("Content-Type"))
		require.Equal(t, "gzip", x.header.Get("Content-Encoding"))
		require.Equal(t, "de", x.header.Get("Content-Language"))
		require.Equal(t, "inline", x.header.Get("Content-Disposition"))
		require.Equal(t, "no-store", x.header.Get("Cache-Control"))
		require.Equal(t, "v 1", x.header.Get("x-ms-meta-key_1"))
		require.Equal(t, []string{""}, x.header.Values("x-ms-meta-empty"))
		require.Equal(t, "Cool", x.header.Get("x-ms-access-tier"))
		require.Empty(t, x.header.Get("x-ms-access-tier-inferred"))
	}
	require.Equal(t, http.StatusCreated, r.put("/cont/b", []byte("y")).status)
	x := r.get("/cont/b")
	require.Equal(t, "application/octet-stream", x.header.Get("Content-Type"))
	require.Empty(t, x.header.Get("Content-Encoding"))
	require.Empty(t, x.header.Values("x-ms-meta-key_1"))
	require.Equal(t, "Cool", x.header.Get("x-ms-access-tier"))
}

// Names: the raw path is cut at the first slash after the container, then decoded, so
// encoded and raw slashes are the same name and nothing is cleaned away.
func TestNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for i, pair := range [][2]string{
		{"/cont/a/b", "/cont/a%2Fb"},
		{"/cont//a//b/", "/cont/%2Fa%2f/b%2F"},
		{"/cont/../x/./y", "/cont/..%2Fx%2F.%2Fy"},
		{"/cont/x/y", "/cont/x%2Fy"}, // Another one than the last,
		{"/cont/dir./y.", "/cont/dir%2E/y%2e"},
		{"/cont/dir/y", "/cont/dir%2Fy"}, // and so is this.
		{"/cont/a+b", "/cont/a%2Bb"},
		{"/cont/%C3%A9;'", "/cont/%c3%a9%3B%27"},
		{"/cont/w%5Cin", "/cont/w/in"},
		{"/cont/" + repeat("x", 1024), "/cont/%78" + repeat("x", 1023)},
	} {
		body := fmt.Appendf(nil, "body %d", i)
		require.Equal(t, http.StatusCreated, r.put(pair[0], body, "If-None-Match", "*").status, pair[0])
		r.requireBlob(pair[1], body)
	}
	r.requireCode(r.get("/cont/A/b"), http.StatusNotFound, "BlobNotFound")
}

// Right hashes are accepted, and the one of the blob wins over that of the body.
func TestHashes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	a := r.put("/cont/b", []byte("123456789"), "x-ms-content-crc64", "iJh5CoYUi64=")
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
	require.Equal(t, "iJh5CoYUi64=", a.header.Get("x-ms-content-crc64"))
	require.Equal(t, "JfnnlDI7RTiF9RgfG2JNCw==", a.header.Get("Content-MD5"))
	a = r.put("/cont/b", []byte("hello world"), "Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww==", "x-ms-blob-content-md5", "XrY7u+Ae7tCTyyK7j1rNww==")
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
	require.Equal(t, "vo7q9sPVKY0=", a.header.Get("x-ms-content-crc64"))
	a = r.put("/cont/b", []byte("x"), "x-ms-version", "2019-12-12")
	require.Empty(t, a.header.Values("x-ms-content-crc64"))

	// Of two MD5 values that of the blob is compared, answered and stored.
	a = r.put("/cont/b", []byte("x"), "Content-MD5", md5Of([]byte("other")), "x-ms-blob-content-md5", md5Of([]byte("x")))
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
	require.Equal(t, md5Of([]byte("x")), a.header.Get("Content-MD5"))
	require.Equal(t, md5Of([]byte("x")), r.get("/cont/b").header.Get("Content-MD5"))
	r.requireCode(r.put("/cont/b", []byte("x"), "Content-MD5", md5Of([]byte("x")), "x-ms-blob-content-md5", md5Of(nil)), 400, "Md5Mismatch")

	// Before 2012-02-12 no MD5 is kept that was not sent; before 2019-02-02 there is no CRC.
	for _, kept := range []bool{false, true} {
		header := []string{"x-ms-version", "2011-08-18", "x-ms-content-crc64", "x"}
		if kept {
			header = append(header, "Content-MD5", md5Of([]byte("x")))
		}
		a = r.put("/cont/b", []byte("x"), header...)
		require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
		require.Equal(t, md5Of([]byte("x")), a.header.Get("Content-MD5"))
		require.Equal(t, kept, r.get("/cont/b").header.Get("Content-MD5") != "")
	}
}

// The CRC is that of the table that the protocol names, over parts of any lengths, and a
// hash that nobody compares or is answered is not computed.
func TestDigests(t *testing.T) {
	t.Parallel()
	table := crc64.MakeTable(0x9a6c9329ac4bc9b5) // protocol/blob.md 18.1
	rapid.Check(t, func(t *rapid.T) {
		d := digests{withCRC: true}
		want := uint64(0)
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 5000), 0, 5).Draw(t, "lengths") {
			part := content(n+7, 1)[rapid.IntRange(0, 7).Draw(t, "offset"):]
			d.write(part)
			want = crc64.Update(want, table, part)
		}
		require.Equal(t, want, d.crc)
		require.Nil(t, d.md5())
	})
	for _, c := range []struct {
		version  protocol.Version
		header   http.Header
		put      bool
		md5, crc bool
	}{
		{"2018-11-09", nil, false, true, false},
		{"2019-02-02", nil, false, false, true},
		{"2019-02-02", http.Header{headerContentCRC64: {"iJh5CoYUi64="}}, false, false, true},
		{"2026-06-06", http.Header{headerContentMD5: {md5Of(nil)}}, false, true, false},
		{"2026-10-06", http.Header{headerContentMD5: {md5Of(nil)}}, false, true, true},
		{"2024-05-04", nil, true, true, false},
		{"2024-08-04", nil, true, true, true},
	} {
		d := digestsOf(t, c.put, c.header, c.version)
		require.Equal(t, c.md5, d.sum != nil, "%+v", c)
		require.Equal(t, c.crc, d.withCRC, "%+v", c)
	}
}

// digestsOf are the digests of a Put Blob, or of a Put Block, with the headers.
func digestsOf(t testing.TB, put bool, h http.Header, v protocol.Version) *digests {
	name := "PutBlock"
	if put {
		name = "PutBlob"
	}
	call := &call{
		r:     &protocol.Request{HTTP: &http.Request{Header: h}, Version: v},
		asked: operation.Match{Operation: operation.Named(geo.Blob, name)},
	}
	require.NoError(t, call.readDigests())
	if put {
		return call.in.digests.ofBlob(v)
	}
	return call.in.digests.ofBlocks(v, true)
}

// Payload that cannot be made durable refuses the upload before anything is proposed.
func TestPutChunkFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("/cont/b", []byte("old"))
	var calls atomic.Int64
	r.payload.onPut = func() error {
		if calls.Add(1) == 2 {
			return errors.New("disk on fire")
		}
		return nil
	}
	r.requireCode(r.put("/cont/b", content(3<<20, 1)), http.StatusServiceUnavailable, "ServerBusy")
	require.GreaterOrEqual(t, calls.Load(), int64(2))
	r.requireBlob("/cont/b", []byte("old"))
}

// Bytes in flight are bounded before a chunk is read: of many uploads no more chunks are
// put than fit, one larger than the bound runs all the same, and one whose time ends while
// it waits changed nothing.
// It holds invariant 8.
func TestInFlight(t *testing.T) {
	t.Parallel()
	const body = 2 << 20
	r := newRig(t, func(o *Options) { o.InFlightBytesMax = 4 * body }) // Half of it for an account.
	gate := make(chan struct{})
	var running, most atomic.Int64
	r.payload.onPut = func() error {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-gate
		running.Add(-1)
		return nil
	}
	var wg sync.WaitGroup
	statuses := make([]int, 6)
	for i := range statuses {
		wg.Go(func() {
			for range 20 {
				a, err := r.try(http.MethodPut, fmt.Sprintf("/cont/b%d", i), bytes.NewReader(content(body, byte(i))), "x-ms-blob-type", "BlockBlob")
				if err == nil {
					statuses[i] = a.status
				}
				// A stamp that is starved loses its leader, and says so: that is not the bound.
				if err != nil || !bytes.Contains(a.body, []byte("unable to receive requests")) && a.header.Get("X-Ms-Error-Code") != "OperationTimedOut" {
					return
				}
			}
		})
	}
	require.Eventually(t, func() bool { return running.Load() == 4 }, 5*time.Second, time.Millisecond)
	r.requireCode(r.put("/cont/late?limit=30ms", content(body, 9)), http.StatusServiceUnavailable, "ServerBusy")
	close(gate)
	wg.Wait()
	for i, status := range statuses {
		require.Equal(t, http.StatusCreated, status)
		r.requireBlob(fmt.Sprintf("/cont/b%d", i), content(body, byte(i)))
	}
	require.Equal(t, int64(4), most.Load(), "two bodies, two chunks of each")
	require.Equal(t, http.StatusCreated, r.put("/cont/huge", content(5<<20, 1)).status)
	r.requireCode(r.get("/cont/late"), http.StatusNotFound, "BlobNotFound")
}

// Test and write are one step: of many creators one succeeds, and of many writers that
// hold the same ETag one does, for bodies inline and in chunks.
func TestConditionsAreAtomic(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	race := func(n int, header ...string) map[int]int {
		var mu sync.Mutex
		var wg sync.WaitGroup
		count := map[int]int{}
		for i := range 16 {
			wg.Go(func() {
				a, err := r.try(http.MethodPut, "/cont/b", bytes.NewReader(content(n, byte(i))), append(header, "x-ms-blob-type", "BlockBlob")...)
				if err != nil {
					a.status = -1
				}
				mu.Lock()
				defer mu.Unlock()
				count[a.status]++
			})
		}
		wg.Wait()
		return count
	}
	for _, n := range []int{100, 20_000} {
		require.Equal(t, map[int]int{201: 1, 409: 15}, race(n, "If-None-Match", "*"))
		tag := r.do(http.MethodHead, "/cont/b", nil).header.Get("ETag")
		require.Equal(t, map[int]int{201: 1, 412: 15}, race(n, "If-Match", tag))
		require.Equal(t, http.StatusAccepted, r.do(http.MethodDelete, "/cont/b", nil).status)
	}
}

// The in-flight semaphore, the inline limit and the default body limit are those the
// documents name.
func TestDefaults(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	require.Zero(t, o.BodyBytesMax)
	for name, want := range map[string][3]int64{"PutBlob": {5000, 256, 64}, "PutBlock": {4000, 100, 4}, "PutBlockList": {8, 8, 8}} {
		for i, v := range []protocol.Version{protocol.Version20191212, protocol.Version20160531, protocol.Version20150221} {
			require.Equal(t, want[i]<<20, operation.Named(geo.Blob, name).BodyMax(v), "%s of %s", name, v)
		}
	}
	require.Equal(t, int64(64<<20), o.InFlightBytesMax)
	require.Less(t, protocol.Version("2021-12-02"), version20240804)
}
