package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"antipode/test/oracle"
	"antipode/test/rest"
)

// The sizes of written blobs in bytes, chosen on both sides of the limit under
// which a payload travels in the log (16 to 32 KiB, DESIGN section 2).
const (
	blobTinyBytes  = 1 << 10
	blobSmallBytes = 40 << 10
	blobBigBytes   = 4 << 20
)

// noBlobTag is a tag that no blob has.
const noBlobTag = `"0x8D0000000000001"`

// bytesOf returns n bytes that depend on the key and the part of it.
func bytesOf(key, part string, n int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], xxhash.Sum64String(key))
	binary.LittleEndian.PutUint64(seed[8:], xxhash.Sum64String(part))
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(seed).Read(b)
	return b
}

// putLength is the length of a blob that is put whole.
func putLength(key string, base oracle.Version) int {
	switch {
	case key[0] == kindBig:
		return blobBigBytes
	case base%2 == 0:
		return blobTinyBytes
	}
	return blobSmallBytes
}

// putBytes is the content of a blob that is put whole: its base decides it.
func putBytes(key string, base oracle.Version) []byte {
	return bytesOf(key, strconv.Itoa(int(base)), putLength(key, base))
}

// blobLength is the length of a blob's content.
func blobLength(key string, s oracle.State) int {
	if isPut(key) {
		return putLength(key, s.Base)
	}
	sum := 0
	for _, b := range blocksOf(key, s) {
		sum += b.size
	}
	return sum
}

// blobBytes is the whole content of a blob.
func blobBytes(key string, s oracle.State) []byte {
	if isPut(key) {
		return putBytes(key, s.Base)
	}
	var out []byte
	for _, b := range blocksOf(key, s) {
		out = append(out, b.bytes(key)...)
	}
	return out
}

// blobMetadata names the versions of a blob, so that a listing shows them too.
func blobMetadata(s oracle.State) map[string]string {
	return map[string]string{"last": strconv.Itoa(int(s.Last)), "base": strconv.Itoa(int(s.Base))}
}

// metadataState reads back what blobMetadata wrote.
func metadataState(key string, m map[string]string) (oracle.State, error) {
	last, err1 := strconv.ParseUint(m["last"], 10, 32)
	base, err2 := strconv.ParseUint(m["base"], 10, 32)
	s := oracle.State{Present: true, Last: oracle.Version(last), Base: oracle.Version(base)}
	if err1 != nil || err2 != nil || len(m) != 2 {
		return s, fmt.Errorf("%w: blob %s has metadata %v", errTorn, key, m)
	}
	return s, nil
}

// sendBlob puts a blob whole, or sets its metadata: the merge of a blob.
func (c *client) sendBlob(ctx context.Context, op operation) (rest.Answer, error) {
	w := rest.BlobWrite{Metadata: blobMetadata(op.state)}
	switch {
	case op.doomed && op.v%2 == 0:
		w.IfNoneMatch = "*"
		return c.Primary.PutBlobWith(ctx, container, op.key, putBytes(op.key, op.state.Base), w)
	case op.doomed:
		w.IfMatch = noBlobTag
	case op.before.Present:
		w.IfMatch = op.match
	default:
		w.IfNoneMatch = "*"
	}
	if op.verb == merge {
		return c.Primary.SetMetadata(ctx, container, op.key, w)
	}
	return c.Primary.PutBlobWith(ctx, container, op.key, putBytes(op.key, op.state.Base), w)
}

// readBlob reads a blob and compares every byte with what its metadata claims; of a
// blob in blocks also the block list.
func readBlob(ctx context.Context, c *rest.Client, key string) (oracle.Read, error) {
	r, err := readContent(ctx, c, key, "")
	if err == nil && r.Present && inBlocks(key) {
		err = checkBlockList(ctx, c, container, key, key, r)
	}
	return r, err
}

// readContent reads a blob, or the snapshot of it with an id, and compares every byte with what its metadata claims.
func readContent(ctx context.Context, c *rest.Client, key, snapshot string) (oracle.Read, error) {
	a, err := c.GetSnapshot(ctx, container, key, snapshot)
	if notThere(a, err) {
		return oracle.Read{}, nil
	}
	if err := unanswered(key, a, err); err != nil {
		return oracle.Read{}, err
	}
	r := oracle.Read{ETag: a.Header.Get("ETag")}
	r.At, _ = a.CommitTime()
	if r.State, err = metadataState(key, a.Metadata()); err != nil {
		return r, err
	}
	if !bytes.Equal(a.Body, blobBytes(key, r.State)) {
		return r, fmt.Errorf("%w: blob %s %s of %d bytes claims %v", errTorn, key, snapshot, len(a.Body), r.State)
	}
	return r, nil
}
