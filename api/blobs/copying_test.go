package blobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/services"
	"antipode/services/blobs"
	"antipode/stamp/extent"
)

// Copies of every kind of payload, of which nothing is put within the location.
func TestCopyBlob(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	small, large := content(100, 1), content(3<<20+5, 2)
	require.Equal(t, 201, r.put("/cont/small", small, "x-ms-blob-content-type", "text/x", "x-ms-meta-k", "v", "x-ms-tags", "a=b").status)
	require.Equal(t, 201, r.put("/cont/large", large).status)
	var listed, xml []byte
	for i, n := range []int{7, 20 << 10, 2<<20 + 1, 1} {
		id := "id" + strconv.Itoa(i)
		part := content(n, byte(i))
		require.Equal(t, 201, r.putBlock("/cont/list", id, part).status)
		listed, xml = append(listed, part...), append(xml, "<Latest>"+blockIDText(id)+"</Latest>"...)
	}
	require.Equal(t, 201, r.do(http.MethodPut, "/cont/list?comp=blocklist", []byte("<BlockList>"+string(xml)+"</BlockList>")).status)
	require.Equal(t, 201, r.create("/cont/append").status)
	require.Equal(t, 201, r.append("/cont/append", small).status)
	require.Equal(t, 201, r.append("/cont/append", large).status)
	puts := r.payload.puts.Load()
	for name, want := range map[string][]byte{"small": small, "large": large, "list": listed, "append": append(small[:len(small):len(small)], large...)} {
		to := "/cont/copy-of-" + name
		a := r.copy(to, "/cont/"+name)
		require.Equal(t, 202, a.status, "%s", a.body)
		require.Equal(t, "success", a.header.Get("x-ms-copy-status"))
		require.Len(t, a.header.Get("x-ms-copy-id"), 36)
		r.requireBlob(to, want)
		head, of := r.do(http.MethodHead, to, nil).header, r.do(http.MethodHead, "/cont/"+name, nil).header
		require.Equal(t, a.header.Get("ETag"), head.Get("ETag"))
		require.Equal(t, a.header.Get("x-ms-copy-id"), head.Get("x-ms-copy-id"))
		require.Equal(t, r.url+"/acct/cont/"+name, head.Get("x-ms-copy-source"))
		require.Equal(t, strconv.Itoa(len(want))+"/"+strconv.Itoa(len(want)), head.Get("x-ms-copy-progress"))
		require.NotEmpty(t, head.Get("x-ms-copy-completion-time"))
		for _, same := range []string{"Content-Type", "Content-MD5", "x-ms-meta-k", "x-ms-blob-type", "x-ms-blob-committed-block-count"} {
			require.Equal(t, of.Get(same), head.Get(same), same)
		}
		require.Empty(t, head.Get("x-ms-tag-count"))
		if name != "append" {
			require.Equal(t, r.get("/cont/"+name+"?comp=blocklist").body, r.get(to+"?comp=blocklist").body)
		}
	}
	require.Equal(t, puts, r.payload.puts.Load(), "payload is moved")
}

// Blocks and blobs from the parts of others share whole chunks, and put the rest.
func TestFromURL(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	large := content(3<<20+5, 2)
	require.Equal(t, 201, r.put("/cont/large", large, "x-ms-blob-content-type", "text/x").status)
	require.Equal(t, 201, r.create("/cont/append").status)
	var appended []byte
	for i, c := range []struct {
		bytes string
		want  []byte
		puts  int64
	}{
		{"", large, 0},
		{"bytes=0-1048575", large[:1<<20], 0},
		{"bytes=1048576-", large[1<<20:], 0},
		{"bytes=1-1048576", large[1 : 1<<20+1], 1},
		{"bytes=1-", large[1:], 4},
		{"bytes=0-1048576", large[:1<<20+1], 2},
		{"bytes=3145728-3145732", large[3<<20:], 0},
		{"bytes=7-7", large[7:8], 0},
	} {
		puts := r.payload.puts.Load()
		header := []string{}
		if c.bytes != "" {
			header = append(header, "x-ms-source-range", c.bytes)
		}
		id := blockIDText("id" + strconv.Itoa(i))
		a := r.copy("/cont/blocks?comp=block&blockid="+id, "/cont/large", header...)
		require.Equal(t, 201, a.status, "%s", a.body)
		require.Equal(t, puts+c.puts, r.payload.puts.Load(), c.bytes)
		require.Equal(t, 201, r.do(http.MethodPut, "/cont/blocks?comp=blocklist", []byte("<BlockList><Latest>"+id+"</Latest></BlockList>")).status)
		r.requireBlob("/cont/blocks", c.want)
		a = r.copy("/cont/append?comp=appendblock", "/cont/large", append(header, "x-ms-source-content-md5", md5Of(c.want))...)
		require.Equal(t, 201, a.status, "%s", a.body)
		require.Equal(t, md5Of(c.want), a.header.Get("Content-MD5"))
		appended = append(appended, c.want...)
		r.requireBlob("/cont/append", appended)
	}
	puts := r.payload.puts.Load()
	a := r.copy("/cont/put", "/cont/append", "x-ms-blob-type", "BlockBlob")
	require.Equal(t, 201, a.status, "%s", a.body)
	r.requireBlob("/cont/put", appended)
	require.Greater(t, r.payload.puts.Load(), puts)
	puts = r.payload.puts.Load()
	a = r.copy("/cont/put", "/cont/large", "x-ms-blob-type", "BlockBlob")
	require.Equal(t, 201, a.status, "%s", a.body)
	r.requireBlob("/cont/put", large)
	require.Equal(t, puts, r.payload.puts.Load())
	require.Equal(t, "text/x", r.get("/cont/put").header.Get("Content-Type"))
	require.Equal(t, md5Of(large), r.get("/cont/put").header.Get("Content-MD5"))
}

// steppedWriter calls before ahead of each step of a copy that has too many blocks for one change.
type steppedWriter struct {
	services.AllWriter
	steps  atomic.Int64
	before func(step int64)
}

func (w *steppedWriter) Write(ctx context.Context, write services.Write) error {
	if s, is := write.(*blobs.StageCopy); is && !s.Ends {
		if n := w.steps.Add(1); w.before != nil {
			w.before(n)
		}
	}
	return w.AllWriter.Write(ctx, write)
}

func newSteppedRig(t *testing.T) (*rig, *steppedWriter) {
	w := &steppedWriter{}
	return newRig(t, func(o *Options) { w.AllWriter, o.Writer = o.Writer, w }), w
}

// putList makes a blob of n blocks of 4 KiB, some of them in chunks.
func (r *rig) putList(path string, n int, seed byte) []byte {
	r.t.Helper()
	var whole []byte
	var ids []string
	for i := range n {
		size := 4 << 10
		if i%50 == 7 {
			size = 17 << 10
		}
		part := content(size+i, seed)
		id := fmt.Sprintf("%04d", i)
		a := r.putBlock(path, id, part)
		for a.status == 500 && a.code(r.t) == "OperationTimedOut" {
			a = r.putBlock(path, id, part) // On a starved machine its outcome may be unknown; a client puts it again, too.
		}
		require.Equal(r.t, 201, a.status, "%s", a.body)
		whole, ids = append(whole, part...), append(ids, "L"+id)
	}
	require.Equal(r.t, 201, r.commit(path, ids).status)
	return whole
}

// Copies of many blocks come in steps, which leave nothing but the copy: block lists with their ids, and append blobs, to which
// the copy can be appended.
func TestCopyInSteps(t *testing.T) {
	t.Parallel()
	r, w := newSteppedRig(t)
	want := r.putList("/cont/list", 300, 1)
	require.Equal(t, 202, r.copy("/cont/copy", "/cont/list").status)
	require.Greater(t, w.steps.Load(), int64(1))
	r.requireBlob("/cont/copy", want)
	require.Equal(t, r.get("/cont/list?comp=blocklist").body, r.get("/cont/copy?comp=blocklist").body)
	require.Equal(t, r.rows("/cont/list"), r.rows("/cont/copy"))
	require.Equal(t, 202, r.copy("/cont/list", "/cont/list", "x-ms-meta-a", "b").status)
	r.requireBlob("/cont/list", want)
	require.Equal(t, r.rows("/cont/copy"), r.rows("/cont/list"), "the copied rows are dropped")
	require.Equal(t, 202, r.do(http.MethodDelete, "/cont/list", nil).status)
	r.requireBlob("/cont/copy", want)

	require.Equal(t, 201, r.create("/cont/log").status)
	var appended []byte
	for i := range 300 {
		part := content(4<<10+i, 2)
		require.Equal(t, 201, r.append("/cont/log", part).status)
		appended = append(appended, part...)
	}
	before := w.steps.Load()
	require.Equal(t, 202, r.copy("/cont/log2", "/cont/log").status)
	require.Greater(t, w.steps.Load(), before+1)
	a := r.append("/cont/log2", []byte("x"), "x-ms-blob-condition-appendpos", strconv.Itoa(len(appended)))
	require.Equal(t, "301", a.header.Get("x-ms-blob-committed-block-count"), "%s", a.body)
	r.requireBlob("/cont/log", appended)
	r.requireBlob("/cont/log2", append(appended, 'x'))
}

// A write of the destination ends a copy in steps, which begins again; one that is overtaken every time is 503.
func TestOvertakenCopy(t *testing.T) {
	t.Parallel()
	r, w := newSteppedRig(t)
	want := r.putList("/cont/list", 300, 1)
	w.before = func(step int64) {
		if step == 2 {
			require.Equal(t, 201, r.put("/cont/copy", []byte("other")).status)
		}
	}
	require.Equal(t, 202, r.copy("/cont/copy", "/cont/list").status)
	r.requireBlob("/cont/copy", want)
	require.Equal(t, r.rows("/cont/list"), r.rows("/cont/copy"))
	w.before = func(int64) { require.Equal(t, 201, r.put("/cont/copy", []byte("other")).status) }
	w.steps.Store(0)
	r.requireCode(r.copy("/cont/copy", "/cont/list"), 503, "ServerBusy")
	require.EqualValues(t, 2*commitTries, w.steps.Load())
	r.requireBlob("/cont/copy", []byte("other"))
	share := r.handler.inFlight.Of("acct")
	held, ok := share.TryAdmit(defaultInFlightBytesMax / 2)
	require.True(t, ok, "each try gives back what it held")
	share.Release(held)
	w.before = nil
	require.Equal(t, 201, r.put("/cont/copy", []byte("last")).status)
	require.Equal(t, 1, r.rows("/cont/copy"), "steps of copies that were ended are dropped")
}

// A source that is replaced while it is copied is copied as it was, or as it is then: never a part of both.
func TestSourceReplacedWhileItIsCopied(t *testing.T) {
	t.Parallel()
	r, w := newSteppedRig(t)
	r.putList("/cont/list", 300, 1)
	var later []byte
	w.before = func(step int64) {
		if step == 1 {
			later = r.putList("/cont/list", 280, 3)
		}
	}
	require.Equal(t, 202, r.copy("/cont/copy", "/cont/list").status)
	r.requireBlob("/cont/copy", later)
	w.before = func(step int64) {
		if step == 1 {
			require.Equal(t, 202, r.do(http.MethodDelete, "/cont/list", nil).status)
		}
	}
	w.steps.Store(0)
	rows := r.rows("/cont/copy")
	r.requireCode(r.copy("/cont/copy", "/cont/list"), 404, "CannotVerifyCopySource")
	r.requireBlob("/cont/copy", later)
	require.Equal(t, rows, r.rows("/cont/copy"), "the steps of a copy that broke off are dropped")
}

// What was staged goes too if the client does, in the midst of a copy onto a name that has no blob.
func TestCopyWithoutClient(t *testing.T) {
	t.Parallel()
	r, w := newSteppedRig(t)
	r.putList("/cont/list", 300, 1)
	ctx, cancel := context.WithCancel(t.Context())
	w.before = func(step int64) {
		if step == 2 {
			cancel()
			time.Sleep(50 * time.Millisecond) // Until the server has seen it.
		}
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPut, r.url+"/acct/cont/gone", nil)
	require.NoError(t, err)
	q.Header.Set("x-ms-version", string(testVersion))
	q.Header.Set("x-ms-copy-source", r.url+"/acct/cont/list")
	resp, err := r.client.Do(q)
	if err == nil {
		require.NoError(t, resp.Body.Close())
	}
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { return r.rows("/cont/gone") == 0 }, 10*time.Second, 10*time.Millisecond)
}

// A source that is named and empty is none: the blob would become what the body has.
func TestEmptySource(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/cont/keep", []byte("precious")).status)
	for _, query := range []string{"", "?comp=block&blockid=QQ==", "?comp=appendblock"} {
		a := r.do(http.MethodPut, "/cont/keep"+query, nil, "x-ms-blob-type", "BlockBlob", "x-ms-copy-source", "")
		r.requireCode(a, 400, "MissingRequiredHeader")
	}
	r.requireBlob("/cont/keep", []byte("precious"))
}

// Of copies onto one blob at once each succeeds or is 503, and the blob is always one of the sources.
func TestConcurrentCopies(t *testing.T) {
	t.Parallel()
	r, _ := newSteppedRig(t)
	sources := [][]byte{r.putList("/cont/0", 290, 1), r.putList("/cont/1", 300, 2), content(2<<20, 3)}
	require.Equal(t, 201, r.put("/cont/2", sources[2]).status)
	require.Equal(t, 202, r.copy("/cont/to", "/cont/0").status)
	var wg sync.WaitGroup
	var copied atomic.Int64
	for i := range sources {
		wg.Go(func() {
			for range 6 {
				switch a := r.copy("/cont/to", "/cont/"+strconv.Itoa(i)); {
				case a.status == 202:
					copied.Add(1)
				case a.status == 503 || bytes.Contains(a.body, []byte("OperationTimedOut")): // The machine is busy.
				default:
					t.Errorf("copy: %d %s", a.status, a.body)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		a := r.get("/cont/to")
		whole := a.err == nil && a.status == 200
		if running && !whole {
			continue // It broke off, since the blob was replaced.
		}
		require.True(t, slices.ContainsFunc(sources, func(s []byte) bool { return bytes.Equal(s, a.body) }), "%d bytes of none of the sources", len(a.body))
	}
	require.Positive(t, copied.Load())
	require.Equal(t, 201, r.put("/cont/to", nil).status)
	require.Equal(t, 1, r.rows("/cont/to"))
}

// A blob without blocks shares the chunks of a list; those of a very long list are read and put as fewer.
func TestManyChunksAreJoined(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var want []byte
	var ids []string
	for i := range 3 {
		part := content(17<<10, byte(i))
		require.Equal(t, 201, r.putBlock("/cont/list", strconv.Itoa(i), part).status)
		ids, want = append(ids, "L"+strconv.Itoa(i)), append(want, part...)
	}
	require.Equal(t, 201, r.commit("/cont/list", ids).status)
	puts := r.payload.puts.Load()
	require.Equal(t, 201, r.copy("/cont/put", "/cont/list", "x-ms-blob-type", "BlockBlob").status)
	require.Equal(t, puts, r.payload.puts.Load())
	r.requireBlob("/cont/put", want)
	ids = slices.Repeat(ids, (sharedMax+3)/3)
	require.Equal(t, 201, r.commit("/cont/list", ids).status)
	want = bytes.Repeat(want, (sharedMax+3)/3)
	require.Equal(t, 201, r.copy("/cont/put", "/cont/list", "x-ms-blob-type", "BlockBlob").status)
	require.Equal(t, puts+chunksOf(len(want)), r.payload.puts.Load())
	r.requireBlob("/cont/put", want)
}

// What a copy keeps of blocks, and what it reads of a source, counts for its account, and is given back however it ends.
func TestCopiesAreBounded(t *testing.T) {
	t.Parallel()
	const bytesMax = 32 << 20
	r := newRig(t, func(o *Options) { o.InFlightBytesMax = bytesMax })
	r.putList("/cont/list", 20, 1)
	share := r.handler.inFlight.Of("acct")
	held, ok := share.TryAdmit(bytesMax / 2)
	require.True(t, ok)
	for _, header := range [][]string{nil, {"x-ms-blob-type", "BlockBlob"}} {
		r.requireCode(r.copy("/cont/copy?limit=50ms", "/cont/list", header...), 503, "ServerBusy")
	}
	share.Release(held)
	for _, header := range [][]string{nil, {"x-ms-blob-type", "BlockBlob"}, {"x-ms-blob-type", "BlockBlob", "x-ms-source-content-md5", md5Of(nil)}} {
		require.Less(t, r.copy("/cont/copy", "/cont/list", header...).status, 500)
	}
	held, ok = share.TryAdmit(bytesMax / 2)
	require.True(t, ok, "not all is given back")
	share.Release(held)
}

// Five GiB are copied by one change, and nothing of them is read or put.
func TestCopyOfFiveGiB(t *testing.T) {
	t.Parallel()
	r, w := newSteppedRig(t)
	const blocks, each = 640, 8 << 20
	require.Equal(t, 201, r.put("/cont/part", content(each, 1)).status)
	puts := r.payload.puts.Load()
	r.payload.onRead = func(extent.Ref, int64) error { return errors.New("payload is read") }
	var ids []string
	for i := range blocks {
		id := fmt.Sprintf("%04d", i)
		require.Equal(t, 201, r.copy("/cont/list?comp=block&blockid="+blockIDText(id), "/cont/part").status)
		ids = append(ids, "L"+id)
	}
	require.Equal(t, 201, r.commit("/cont/list", ids).status)
	for _, header := range [][]string{nil, {"x-ms-blob-type", "BlockBlob"}} {
		began := time.Now()
		a := r.copy("/cont/copy", "/cont/list", header...)
		t.Logf("%v: %v", header, time.Since(began))
		if header == nil {
			require.Equal(t, 202, a.status, "%s", a.body)
			require.Equal(t, r.get("/cont/list?comp=blocklist").body, r.get("/cont/copy?comp=blocklist").body)
		} else { // 5120 MiB are more than the 5000 that one blob without blocks may have.
			r.requireCode(a, 409, "CannotVerifyCopySource")
			require.Contains(t, string(a.body), "too large")
		}
		require.Equal(t, strconv.Itoa(blocks*each), r.do(http.MethodHead, "/cont/copy", nil).header.Get("Content-Length"))
	}
	r.requireCode(r.copy("/cont/copy", "/cont/list", "x-ms-requires-sync", "true"), 409, "CannotVerifyCopySource")
	r.requireCode(r.copy("/cont/b?comp=block&blockid=AAAA", "/cont/list"), 413, "RequestBodyTooLarge")
	require.Zero(t, w.steps.Load())
	require.Equal(t, puts, r.payload.puts.Load())
}
