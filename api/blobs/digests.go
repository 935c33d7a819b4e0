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
	// answersCRC: the answer has the CRC.
	answersCRC bool
	// wantMD5 and wantCRC are the values sent, in Base64; empty for none.
	wantMD5, wantCRC string
}

// readDigests reads what the client says of the body: its CRC and its MD5. Of the two headers
// that may hold the MD5 of payload x-ms-blob-content-md5 counts (protocol/blob.md 18.3);
// Content-MD5 is then not compared. Put Blob of an append blob has no body to compare with.
func (c *call) readDigests() error {
	if c.in.appends {
		return nil
	}
	h, d := c.r.HTTP.Header, &c.in.digests
	if c.r.Version >= protocol.Version20190202 {
		d.wantCRC = h.Get(headerContentCRC64)
	}
	if d.wantCRC != "" {
		if h.Get(headerContentMD5) != "" {
			return storageerr.BothCRC64AndMD5
		}
		if !isBase64(d.wantCRC, crc64nvme.Size) {
			return badHeader(headerContentCRC64, d.wantCRC)
		}
		d.withCRC = true
	}
	if c.takesPayload() {
		d.wantMD5 = h.Get(headerBlobContentMD5)
	}
	sent := h.Get(headerContentMD5)
	for _, value := range [...]string{d.wantMD5, sent} {
		if value != "" && !isBase64(value, md5.Size) {
			return storageerr.InvalidMD5
		}
	}
	if d.wantMD5 == "" {
		d.wantMD5 = sent
	}
	return nil
}

// ofBlob chooses the hashes of Put Blob, whose answer and whose blob always have the MD5
// (protocol/blob.md 18.2).
func (d *digests) ofBlob(v protocol.Version) *digests {
	d.sum = md5.New()
	d.answersCRC = v >= version20240804
	d.withCRC = d.withCRC || d.answersCRC
	return d
}

// ofBlocks chooses the hashes of Put Block, or with both false of Put Block List. From
// 2019-02-02 on the answer has the MD5 where the request had it, and the CRC otherwise; with
// both it has the two where the request had an MD5 and its version is 2026-10-06 or later
// (protocol/blob.md 18.2).
func (d *digests) ofBlocks(v protocol.Version, both bool) *digests {
	if d.wantMD5 != "" || v < protocol.Version20190202 {
		d.sum = md5.New()
		d.withCRC = both && v >= version20261006
	} else {
		d.withCRC = true
	}
	d.answersCRC = d.withCRC
	return d
}

// ofDocument chooses the hashes of a document, which are compared where they were sent, and not answered.
func (d *digests) ofDocument() *digests {
	if d.wantMD5 != "" {
		d.sum = md5.New()
	}
	return d
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
	if d.wantMD5 != "" && d.wantMD5 != d.md5Text() {
		return storageerr.MD5Mismatch.With("UserSpecifiedMd5", d.wantMD5, "ServerCalculatedMd5", d.md5Text())
	}
	if d.wantCRC != "" && d.wantCRC != encodeCRC64(d.crc) {
		return storageerr.CRC64Mismatch.With("UserSpecifiedCrc64", d.wantCRC, "ServerCalculatedCrc64", encodeCRC64(d.crc))
	}
	return nil
}

// md5Text is the MD5 as it is answered, empty where it was not computed.
func (d *digests) md5Text() string { return encodeMD5(d.md5()) }

// crcText is the CRC as it is answered, empty where it is not.
func (d *digests) crcText() string {
	if !d.answersCRC {
		return ""
	}
	return encodeCRC64(d.crc)
}

func encodeMD5(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }

func encodeCRC64(crc uint64) string {
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, crc))
}
