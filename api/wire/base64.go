package wire

import "encoding/base64"

// DecodeBase64 reads the one Base64 form of some bytes: padded, unused bits zero, no
// line ends. Hashes and block ids are compared by their text, so that a second text of
// the same bytes would be another hash, or another block.
func DecodeBase64(text string) (b []byte, ok bool) {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	return b, err == nil && len(text) == base64.StdEncoding.EncodedLen(len(b))
}
