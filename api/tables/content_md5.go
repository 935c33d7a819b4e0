package tables

import (
	"crypto/md5"
	"encoding/base64"
	"hash"

	"antipode/api/wire"
	"antipode/services/storageerr"
)

// bodyMD5 checks a body against the Content-MD5 of its request (protocol/table.md 3). Nil
// where none was sent.
type bodyMD5 struct {
	want string
	sum  hash.Hash
}

// newBodyMD5 reads the header; InvalidMd5 for what is no MD5.
func newBodyMD5(header string) (*bodyMD5, error) {
	if header == "" {
		return nil, nil
	}
	if b, ok := wire.DecodeBase64(header); !ok || len(b) != md5.Size {
		return nil, storageerr.InvalidMD5
	}
	return &bodyMD5{want: header, sum: md5.New()}, nil
}

func (m *bodyMD5) write(p []byte) {
	if m != nil {
		_, _ = m.sum.Write(p) // A hash takes everything.
	}
}

// check compares the header with what was written: the whole body.
func (m *bodyMD5) check() error {
	if m == nil {
		return nil
	}
	if got := base64.StdEncoding.EncodeToString(m.sum.Sum(nil)); got != m.want {
		return storageerr.MD5Mismatch.With("UserSpecifiedMd5", m.want, "ServerCalculatedMd5", got)
	}
	return nil
}
