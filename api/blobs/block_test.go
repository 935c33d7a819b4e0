package blobs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/apitest"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
)

func blockIDText(id string) string { return base64.StdEncoding.EncodeToString([]byte(id)) }

// putBlock stages a block.
func (r *rig) putBlock(path, id string, body []byte, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPut, path+"?comp=block&blockid="+url.QueryEscape(blockIDText(id)), body, header...)
}

// commit commits blocks: ids with a first letter of the element that names them, C, U
// or L.
func (r *rig) commit(path string, ids []string, header ...string) answer {
	r.t.Helper()
	var b strings.Builder
	b.WriteString("\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>")
	for _, id := range ids {
		name := map[byte]string{'C': "Committed", 'U': "Uncommitted", 'L': "Latest"}[id[0]]
		fmt.Fprintf(&b, "<%s>%s</%s>\n", name, blockIDText(id[1:]), name)
	}
	b.WriteString("</BlockList>")
	return r.do(http.MethodPut, path+"?comp=blocklist", []byte(b.String()), header...)
}

// blocks are the two lists of a blob, as id:size.
func (r *rig) blocks(path, kind string) (committed, uncommitted []string, a answer) {
	r.t.Helper()
	a = r.get(path + "?comp=blocklist&blocklisttype=" + kind)
	require.Equal(r.t, http.StatusOK, a.status, "%s", a.body)
	type block struct {
		Name string
		Size int
	}
	var doc struct {
		Committed   []block `xml:"CommittedBlocks>Block"`
		Uncommitted []block `xml:"UncommittedBlocks>Block"`
	}
	require.NoError(r.t, xml.Unmarshal(a.body, &doc), "%s", a.body)
	texts := func(list []block) (out []string) {
		for _, b := range list {
			id, err := base64.StdEncoding.DecodeString(b.Name)
			require.NoError(r.t, err)
			out = append(out, fmt.Sprintf("%s:%d", id, b.Size))
		}
		return out
	}
	return texts(doc.Committed), texts(doc.Uncommitted), a
}

// Blocks inline and in chunks are staged unseen, committed in the order of the list,
// read whole and by ranges that cross them, and edited by a list that names old and
// new ones.
func TestBlocks(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	parts := [][]byte{content(100, 1), content(16<<10+1, 2), content(2<<20+3, 3), content(5, 4)}
	first := r.put("/cont/b", []byte("old"))
	for i, p := range parts {
		a := r.putBlock("/cont/b", fmt.Sprintf("?~%d", i), p)
		require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
		require.NotEmpty(t, a.header.Get("x-ms-content-crc64"))
		require.Empty(t, a.header.Values("Content-MD5"))
		require.Empty(t, a.header.Values("ETag"))
	}
	r.requireBlob("/cont/b", []byte("old"))
	require.Equal(t, first.header.Get("ETag"), r.do(http.MethodHead, "/cont/b", nil).header.Get("ETag"))
	committed, uncommitted, a := r.blocks("/cont/b", "all")
	require.Empty(t, committed)
	require.Equal(t, []string{"?~0:100", "?~1:16385", "?~2:2097155", "?~3:5"}, uncommitted)
	require.Equal(t, first.header.Get("ETag"), a.header.Get("ETag"))
	require.Equal(t, "3", a.header.Get("x-ms-blob-content-length"))

	sum := md5Of([]byte("anything"))
	put := r.commit("/cont/b", []string{"U?~3", "L?~2", "L?~0", "U?~3", "L?~1"}, "x-ms-meta-k", "v", "Content-Type", "application/xml",
		"x-ms-blob-content-type", "text/x", "x-ms-blob-content-md5", sum, "x-ms-access-tier", "Cool", "If-Match", first.header.Get("ETag"))
	require.Equal(t, http.StatusCreated, put.status, "%s", put.body)
	require.NotEmpty(t, put.header.Get("x-ms-content-crc64"))
	want := bytes.Join([][]byte{parts[3], parts[2], parts[0], parts[3], parts[1]}, nil)
	get := r.get("/cont/b")
	require.True(t, bytes.Equal(want, get.body))
	require.Equal(t, put.header.Get("ETag"), get.header.Get("ETag"))
	require.Equal(t, fmt.Sprint(len(want)), get.header.Get("Content-Length"))
	require.Equal(t, sum, get.header.Get("Content-MD5"))
	require.Equal(t, "text/x", get.header.Get("Content-Type"))
	require.Equal(t, "v", get.header.Get("x-ms-meta-k"))
	for _, s := range [][2]int{{0, 0}, {4, 5}, {3, len(want) - 2}, {2<<20 + 8, 2<<20 + 8}, {len(want) - 1, len(want) + 9}} {
		end := min(s[1]+1, len(want))
		a := r.get("/cont/b", "x-ms-range", fmt.Sprintf("bytes=%d-%d", s[0], s[1]), "x-ms-range-get-content-md5", "true")
		require.Equal(t, http.StatusPartialContent, a.status, "%s", a.body)
		require.True(t, bytes.Equal(want[s[0]:end], a.body), "range %v", s)
		require.Equal(t, md5Of(want[s[0]:end]), a.header.Get("Content-MD5"))
	}
	committed, uncommitted, _ = r.blocks("/cont/b", "all")
	require.Equal(t, []string{"?~3:5", "?~2:2097155", "?~0:100", "?~3:5", "?~1:16385"}, committed)
	require.Empty(t, uncommitted)

	r.putBlock("/cont/b", "?~0", []byte("new"))
	r.putBlock("/cont/b", "?~9", []byte("dropped"))
	r.requireCode(r.commit("/cont/b", []string{"C?~9"}), http.StatusBadRequest, "InvalidBlockList")
	r.requireCode(r.commit("/cont/b", []string{"U?~1"}), http.StatusBadRequest, "InvalidBlockList")
	r.requireCode(r.commit("/cont/b", []string{"C?~0", "U?~0"}), http.StatusBadRequest, "InvalidBlockList")
	r.requireCode(r.commit("/cont/b", []string{"C?~0", "C?~"}), http.StatusBadRequest, "InvalidBlobOrBlock")
	r.requireCode(r.putBlock("/cont/b", "?~10", []byte("x")), http.StatusBadRequest, "InvalidBlobOrBlock")
	require.Equal(t, http.StatusCreated, r.commit("/cont/b", []string{"L?~0", "C?~3", "L?~1"}).status)
	r.requireBlob("/cont/b", bytes.Join([][]byte{[]byte("new"), parts[3], parts[1]}, nil))
	head := r.do(http.MethodHead, "/cont/b", nil)
	require.Empty(t, head.header.Get("x-ms-meta-k"), "metadata is replaced")
	require.Empty(t, head.header.Get("Content-MD5"))
	require.Equal(t, "application/octet-stream", head.header.Get("Content-Type"))
	require.Equal(t, "Cool", head.header.Get("x-ms-access-tier"), "the tier is kept")
	require.Equal(t, 5, r.rows("/cont/b"), "the blob, a list and three blocks")

	r.putBlock("/cont/b", "?~0", []byte("dropped"))
	require.Equal(t, http.StatusCreated, r.put("/cont/b", []byte("whole")).status)
	committed, uncommitted, _ = r.blocks("/cont/b", "all")
	require.Empty(t, committed)
	require.Empty(t, uncommitted)
	require.Equal(t, 1, r.rows("/cont/b"))
	require.Equal(t, http.StatusCreated, r.commit("/cont/b", nil).status)
	r.requireBlob("/cont/b", []byte{})
}

// rows counts the rows of a blob in the leader's state.
func (r *rig) rows(path string) int {
	r.t.Helper()
	var rows int
	container, blob, _ := strings.Cut(path[1:], "/")
	c := &call{Handler: r.handler, r: &protocol.Request{}, ctx: r.t.Context(), res: resource{container: container, blob: blob}}
	c.r = &protocol.Request{Account: &r.account}
	name, err := c.name()
	require.NoError(r.t, err)
	require.NoError(r.t, r.stamp.Read(r.t.Context(), geo.FirstRange(geo.Blob), func(s ranges.State) error {
		rows = 0
		prefix := name.Partition().Append(nil)
		snap := s.Snapshot()
		it, err := snap.Scan(prefix, append(prefix[:len(prefix):len(prefix)], 0xff))
		require.NoError(r.t, err)
		for it.Next() {
			rows++
		}
		require.NoError(r.t, it.Close())
		return snap.Close()
	}))
	return rows
}

// Blocks without a commit are no blob: reads say so, a listing shows it where it is
// asked for, it can be deleted, and after a week it is gone.
func TestUncommittedBlob(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Now())
	r := newRig(t, func(o *Options) { o.Clock = manual })
	r.put("/cont/a", nil)
	require.Equal(t, http.StatusCreated, r.putBlock("/cont/b", "1", content(20_000, 1)).status)
	for _, query := range []string{"", "?comp=metadata"} {
		r.requireCode(r.get("/cont/b"+query), http.StatusNotFound, "BlobNotFound")
	}
	r.requireCode(r.do(http.MethodPut, "/cont/b?comp=metadata", nil), http.StatusNotFound, "BlobNotFound")
	_, uncommitted, a := r.blocks("/cont/b", "uncommitted")
	require.Equal(t, []string{"1:20000"}, uncommitted)
	require.Empty(t, a.header.Values("ETag"))
	require.Equal(t, "0", a.header.Get("x-ms-blob-content-length"))
	require.NotContains(t, string(a.body), "CommittedBlocks><CommittedBlocks")

	const asked = listPath + "&include=uncommittedblobs,metadata"
	require.Equal(t, []string{"a"}, r.list(listPath).names())
	l := r.list(asked)
	require.Equal(t, []string{"a", "b"}, l.names())
	require.Equal(t, listedProperties{Length: "0", BlobType: "BlockBlob", LeaseState: "available", LeaseStatus: "unlocked"}, l.Blobs[1].Properties)
	require.Nil(t, l.Blobs[1].Metadata)

	r.requireCode(r.do(http.MethodDelete, "/cont/b", nil, "x-ms-version", "2012-02-12"), http.StatusNotFound, "BlobNotFound")
	r.requireCode(r.do(http.MethodDelete, "/cont/b", nil, "If-Match", "*"), http.StatusPreconditionFailed, "ConditionNotMet")
	require.Equal(t, http.StatusAccepted, r.do(http.MethodDelete, "/cont/b", nil).status)
	require.Equal(t, []string{"a"}, r.list(asked).names())
	require.Zero(t, r.rows("/cont/b"))

	r.putBlock("/cont/b", "1", []byte("x"))
	require.Equal(t, http.StatusCreated, r.commit("/cont/b", []string{"L1"}, "If-None-Match", "*").status, "blocks alone are no blob")
	r.requireCode(r.commit("/cont/b", nil, "If-None-Match", "*"), http.StatusConflict, "BlobAlreadyExists")
	r.putBlock("/cont/c", "1", []byte("x"))
	manual.Advance(8 * 24 * time.Hour)
	require.Equal(t, []string{"a", "b"}, r.list(asked).names())
	r.requireCode(r.get("/cont/c?comp=blocklist"), http.StatusNotFound, "BlobNotFound")
}

// The hashes an answer of blocks has go by version and by what was sent.
func TestBlockHashes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := []byte("123456789")
	const crc = "iJh5CoYUi64="
	for _, c := range []struct {
		version string
		header  []string
		md5     string
		crc     string
	}{
		{"2018-11-09", nil, md5Of(body), ""},
		{"2019-02-02", nil, "", crc},
		{"2019-02-02", []string{"x-ms-content-crc64", crc}, "", crc},
		{"2026-06-06", []string{"Content-MD5", md5Of(body)}, md5Of(body), ""},
		{"2026-10-06", []string{"Content-MD5", md5Of(body)}, md5Of(body), crc},
	} {
		a := r.putBlock("/cont/b", "1", body, append(c.header, "x-ms-version", c.version)...)
		require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
		require.Equal(t, c.md5, a.header.Get("Content-MD5"), "%v", c)
		require.Equal(t, c.crc, a.header.Get("x-ms-content-crc64"), "%v", c)
	}
}

// Bodies over the limit of the version are 413 with the limit, before they are read.
// It holds invariant 8.
func TestBodyLimits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	r := newRig(t, nil)
	for _, c := range []struct {
		version, query string
		mib            int64
	}{
		{"2011-08-18", "", 64},
		{"2016-05-31", "", 256},
		{"2019-12-12", "", 5000},
		{"2011-08-18", "?comp=block&blockid=AA==", 4},
		{"2016-05-31", "?comp=block&blockid=AA==", 100},
		{testVersion, "?comp=block&blockid=AA==", 4000},
	} {
		head := fmt.Sprintf("PUT /acct/cont/b%s HTTP/1.1\r\nHost: x\r\nx-ms-version: %s\r\nx-ms-blob-type: BlockBlob\r\nConnection: close\r\n", c.query, c.version)
		require.Contains(t, apitest.Raw(t, r.url, fmt.Sprintf("%sContent-Length: %d\r\n\r\n", head, c.mib<<20+1), false), "413", "%v", c)
		// One byte less is taken: it ends with the connection.
		require.Contains(t, apitest.Raw(t, r.url, fmt.Sprintf("%sContent-Length: %d\r\n\r\n", head, c.mib<<20), true), "400", "%v", c)
	}
	r.requireCode(r.get("/cont/b"), http.StatusNotFound, "BlobNotFound")
}

// A blob that is replaced, and whose blocks are dropped, while it is read breaks off
// short of its Content-Length; the bytes that were sent are of the old state.
func TestReplacedWhileRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var want []byte
	var ids []string
	for i := range 80 {
		body := content(16<<10, byte(i)) // 80 blocks inline are more than one window.
		id := fmt.Sprintf("%02d", i)
		require.Equal(t, http.StatusCreated, r.putBlock("/cont/b", id, body).status)
		want, ids = append(want, body...), append(ids, "L"+id)
	}
	last := content(20_000, 99)
	require.Equal(t, http.StatusCreated, r.putBlock("/cont/b", "zz", last).status)
	ids = append([]string{"Lzz"}, ids...)
	want = append(last, want...)
	require.Equal(t, http.StatusCreated, r.commit("/cont/b", ids).status)
	r.requireBlob("/cont/b", want)
	replaced := false
	r.payload.onRead = func(extent.Ref, int64) error {
		if !replaced {
			replaced = true
			require.Equal(t, http.StatusCreated, r.put("/cont/b", []byte("new")).status)
		}
		return nil
	}
	a := r.get("/cont/b")
	require.True(t, replaced)
	require.Error(t, a.err)
	require.Less(t, len(a.body), len(want))
	require.True(t, bytes.Equal(want[:len(a.body)], a.body))
	r.requireBlob("/cont/b", []byte("new"))
}

// Any text gives a list of at most 50,000 ids that are in range, or a row of the
// protocol.
func FuzzParseBlockList(f *testing.F) {
	f.Add("<BlockList><Latest>AA==</Latest><Committed>AAAA</Committed></BlockList>")
	f.Add("\ufeff<?xml version=\"1.0\"?><BlockList/>")
	f.Add("<!DOCTYPE a><BlockList><Latest><a/></Latest>")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseBlockList(strings.NewReader(text))
		if err != nil {
			_, known := storageerr.Of(err)
			require.True(t, known, "%v", err)
			return
		}
		require.LessOrEqual(t, len(list), blobs.CommittedMax)
		for _, n := range list {
			require.NotZero(t, n.Which)
			require.NotEmpty(t, n.ID)
			require.LessOrEqual(t, len(n.ID), blobs.BlockIDMax)
		}
	})
}

// overtaking is a writer that stages a block of the same blob ahead of a block list.
type overtaking struct {
	services.AllWriter
	// left is how many lists are overtaken from now on.
	left  int
	lists int
}

func (o *overtaking) Write(ctx context.Context, w services.Write) error {
	if list, ok := w.(*blobs.PutBlockList); ok {
		o.lists++
		if o.left > 0 {
			o.left--
			block := &blobs.PutBlock{Command: blobs.Command{Name: list.Name}, ID: "0000", Block: blobs.Block{Length: 3, Inline: []byte("new")}}
			if err := o.AllWriter.Write(ctx, block); err != nil {
				return err
			}
		}
	}
	return o.AllWriter.Write(ctx, w)
}

// A long list that another Put Block overtakes is prepared again and then holds the
// newer block; one that is overtaken every time is refused as busy, and changed
// nothing.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	var w *overtaking
	r := newRig(t, func(o *Options) {
		w = &overtaking{AllWriter: o.Writer}
		o.Writer = w
	})
	var want strings.Builder
	var ids []string
	for i := range 1001 {
		id := fmt.Sprintf("%04d", i)
		require.Equal(t, http.StatusCreated, r.putBlock("/cont/b", id, []byte(id)).status)
		ids = append(ids, "L"+id)
		want.WriteString(id)
	}
	w.left = 100
	r.requireCode(r.commit("/cont/b", ids), http.StatusServiceUnavailable, "ServerBusy")
	require.Equal(t, commitTries, w.lists)
	r.requireCode(r.get("/cont/b"), http.StatusNotFound, "BlobNotFound")
	w.left, w.lists = 1, 0
	require.Equal(t, http.StatusCreated, r.commit("/cont/b", ids).status)
	require.Equal(t, 2, w.lists)
	r.requireBlob("/cont/b", []byte("new"+want.String()[4:]))
}
