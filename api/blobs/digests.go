package blobs

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"hash/crc64"
	"net/http"

	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// crcTable is CRC-64/NVME (spec/blob.md 18.1).
var crcTable = crc64.MakeTable(0x9a6c9329ac4bc9b5) //nolint:gochecknoglobals // A table, never changed.

const (
	headerContentMD5     = "Content-Md5"
	headerBlobContentMD5 = "X-Ms-Blob-Content-Md5"
	headerContentCRC64   = "X-Ms-Content-Crc64"
)

// digests are the hashes of a body, and what the client said they are.
type digests struct {
	sum hash.Hash
	// crc is kept only where somebody will look at it.
	crc     uint64
	withCRC bool
	// want are the MD5 values sent, in Base64: each must be that of the body.
	want    []string
	wantCRC string
}

// parseDigests reads the hash headers of a write; md5Headers are those that hold the MD5 of
// the body.
func parseDigests(h http.Header, v protocol.Version, md5Headers ...string) (*digests, error) {
	d := &digests{sum: md5.New(), wantCRC: h.Get(headerContentCRC64)}
	d.withCRC = d.wantCRC != "" || v >= version20240804
	if d.wantCRC != "" {
		if h.Get(headerContentMD5) != "" {
			return nil, storageerr.BothCRC64AndMD5
		}
		if !isBase64(d.wantCRC, crc64.Size) {
			return nil, badHeader(headerContentCRC64, d.wantCRC)
		}
	}
	for _, name := range md5Headers {
		value := h.Get(name)
		if value == "" {
			continue
		}
		if !isBase64(value, md5.Size) {
			return nil, storageerr.InvalidMD5
		}
		d.want = append(d.want, value)
	}
	return d, nil
}

// isBase64 reports whether text is the one Base64 form of size bytes.
func isBase64(text string, size int) bool {
	b, ok := protocol.DecodeBase64(text)
	return ok && len(b) == size
}

func (d *digests) write(p []byte) {
	_, _ = d.sum.Write(p) // A hash takes everything.
	if d.withCRC {
		d.crc = crc64.Update(d.crc, crcTable, p)
	}
}

func (d *digests) md5() *[md5.Size]byte { return (*[md5.Size]byte)(d.sum.Sum(nil)) }

// check compares with what the client sent.
func (d *digests) check() error {
	got := encodeMD5(*d.md5())
	for _, want := range d.want {
		if want != got {
			return storageerr.MD5Mismatch.With("UserSpecifiedMd5", want, "ServerCalculatedMd5", got)
		}
	}
	if crc := encodeCRC64(d.crc); d.wantCRC != "" && d.wantCRC != crc {
		return storageerr.CRC64Mismatch.With("UserSpecifiedCrc64", d.wantCRC, "ServerCalculatedCrc64", crc)
	}
	return nil
}

// parseBlockDigests reads the hash headers of a Put Block or a Put Block List, whose
// answer tells the hash that the client did not send (spec/blob.md 18.2).
func (c *call) parseBlockDigests() (*digests, error) {
	d, err := parseDigests(c.r.HTTP.Header, c.r.Version, headerContentMD5)
	if err == nil && c.r.Version >= protocol.Version20190202 {
		d.withCRC = true
	}
	return d, err
}

// answerBlockHashes writes the hashes that go with parseBlockDigests. both says that a
// request which sent an MD5 gets both.
func (c *call) answerBlockHashes(d *digests, both bool) {
	h, sent := c.w.Header(), c.r.Header(headerContentMD5) != ""
	if sent || c.r.Version < protocol.Version20190202 {
		h[headerContentMD5] = []string{encodeMD5(*d.md5())}
	}
	if d.withCRC && (!sent || both) {
		h[headerContentCRC64] = []string{encodeCRC64(d.crc)}
	}
}

func encodeMD5(sum [md5.Size]byte) string { return base64.StdEncoding.EncodeToString(sum[:]) }

func encodeCRC64(crc uint64) string {
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, crc))
}
