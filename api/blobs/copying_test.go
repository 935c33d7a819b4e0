package blobs

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
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
