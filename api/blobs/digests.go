package blobs

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash"

	"github.com/minio/crc64nvme"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/services/storageerr"
)

const (
	headerContentMD5     = "Content-Md5"
	headerBlobContentMD5 = "X-Ms-Blob-Content-Md5"
	headerContentCRC64   = "X-Ms-Content-Crc64"
)

// digests are the hashes of a body, and what the client said they are. A hash is computed
// only where it is compared or answered: MD5 costs a hundred times as much as the CRC.
type digests struct {
	sum     hash.Hash // MD5; nil where it is not computed
	crc     uint64    // CRC-64/NVME (protocol/blob.md 18.1)
	withCRC bool
	// wantMD5 and wantCRC are the values sent, in Base64; empty for none.
	wantMD5, wantCRC string
}

// parsePutDigests reads the hash headers of Put Blob, whose answer and whose blob always
// have the MD5. Of the two headers that may hold it x-ms-blob-content-md5 counts
// (protocol/blob.md 18.3); Content-MD5 is then not compared.
func (c *call) parsePutDigests() (*digests, error) {
	d, err := c.parseDigests(headerBlobContentMD5, headerContentMD5)
	if err != nil {
		return nil, err
	}
	d.sum = md5.New()
	d.withCRC = d.withCRC || c.r.Version >= version20240804
	return d, nil
}

// parseBlockDigests reads the hash headers of a Put Block, or with both false of a Put
// Block List. From 2019-02-02 on the answer has the MD5 where the request had it, and the
// CRC otherwise; with both it has the two where the request had an MD5 and its version is
// 2026-10-06 or later (protocol/blob.md 18.2).
func (c *call) parseBlockDigests(both bool) (*digests, error) {
	d, err := c.parseDigests(headerContentMD5)
	switch {
	case err != nil:
		return nil, err
	case d.wantMD5 != "" || c.r.Version < protocol.Version20190202:
		d.sum = md5.New()
		d.withCRC = both && c.r.Version >= version20261006
	default:
		d.withCRC = true
	}
	return d, nil
}

// parseDigests reads what the client says of the body: its CRC, and its MD5 by the first
// of the headers named that was sent.
func (c *call) parseDigests(md5Headers ...string) (*digests, error) {
	h := c.r.HTTP.Header
	d := &digests{}
	if c.r.Version >= protocol.Version20190202 {
		d.wantCRC = h.Get(headerContentCRC64)
	}
	if d.wantCRC != "" {
		if h.Get(headerContentMD5) != "" {
			return nil, storageerr.BothCRC64AndMD5
		}
		if !isBase64(d.wantCRC, crc64nvme.Size) {
			return nil, badHeader(headerContentCRC64, d.wantCRC)
		}
		d.withCRC = true
	}
	for _, name := range md5Headers {
		value := h.Get(name)
		if value == "" {
			continue
		}
		if !isBase64(value, md5.Size) {
			return nil, storageerr.InvalidMD5
		}
		if d.wantMD5 == "" {
			d.wantMD5 = value
		}
	}
	return d, nil
}

// isBase64 reports whether text is the one Base64 form of size bytes.
func isBase64(text string, size int) bool {
	b, ok := wire.DecodeBase64(text)
	return ok && len(b) == size
}

func (d *digests) write(p []byte) {
	if d.sum != nil {
		_, _ = d.sum.Write(p) // A hash takes everything.
	}
	if d.withCRC {
		d.crc = crc64nvme.Update(d.crc, p)
	}
}

// md5 is the MD5 of the body, nil where it was not computed.
func (d *digests) md5() []byte {
	if d.sum == nil {
		return nil
	}
	return d.sum.Sum(nil)
}

// check compares with what the client sent.
func (d *digests) check() error {
	if got := encodeMD5(d.md5()); d.wantMD5 != "" && d.wantMD5 != got {
		return storageerr.MD5Mismatch.With("UserSpecifiedMd5", d.wantMD5, "ServerCalculatedMd5", got)
	}
	if got := encodeCRC64(d.crc); d.wantCRC != "" && d.wantCRC != got {
		return storageerr.CRC64Mismatch.With("UserSpecifiedCrc64", d.wantCRC, "ServerCalculatedCrc64", got)
	}
	return nil
}

// answerHashes writes what was computed of the body of a Put Block or Put Block List.
func (c *call) answerHashes(d *digests) {
	h := c.w.Header()
	if d.sum != nil {
		h[headerContentMD5] = []string{encodeMD5(d.md5())}
	}
	if d.withCRC {
		h[headerContentCRC64] = []string{encodeCRC64(d.crc)}
	}
}

func encodeMD5(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }

func encodeCRC64(crc uint64) string {
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, crc))
}
