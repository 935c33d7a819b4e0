package odata

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"antipode/services/storageerr"
)

// tokenBytesMax bounds a token that is decoded: two keys of 512 characters do not
// come near.
const tokenBytesMax = 8 << 10

// tokenVersion opens every token.
const tokenVersion = "1!"

// Continuation is the key at which the next page starts, inclusive. The key need not
// exist. The zero value starts at the first row.
type Continuation struct {
	PK, RK string
	// HasPK is false when the query starts afresh. HasRK is false when the page starts
	// at the first row of PK.
	HasPK, HasRK bool
}

// ParseContinuation reads the decoded values of NextPartitionKey and NextRowKey; an
// empty one is absent.
func ParseContinuation(nextPartitionKey, nextRowKey string) (c Continuation, err error) {
	switch {
	case nextPartitionKey == "" && nextRowKey == "":
		return c, nil
	case nextPartitionKey == "":
		return c, storageerr.InvalidInput
	}
	if c.PK, err = DecodeToken(nextPartitionKey); err != nil {
		return Continuation{}, err
	}
	c.HasPK = true
	if nextRowKey == "" {
		return c, nil
	}
	if c.RK, err = DecodeToken(nextRowKey); err != nil {
		return Continuation{}, err
	}
	c.HasRK = true
	return c, nil
}

// EncodeToken returns the token of a key: 1!{length}!{Base64, '=' written '-'}. It is
// ASCII, never empty and without spaces, for any key, and means the same for ever.
// Keys and table names have the same form.
func EncodeToken(key string) string {
	text := base64.StdEncoding.EncodeToString([]byte(key))
	return tokenVersion + strconv.Itoa(len(text)) + "!" + strings.ReplaceAll(text, "=", "-")
}

// DecodeToken is the inverse of EncodeToken. Spaces are read as the plus signs they
// were before a client forgot to encode them.
func DecodeToken(token string) (string, error) {
	rest, ok := strings.CutPrefix(token, tokenVersion)
	if !ok || len(token) > tokenBytesMax {
		return "", storageerr.InvalidInput
	}
	length, text, ok := strings.Cut(rest, "!")
	if !ok || length != strconv.Itoa(len(text)) {
		return "", storageerr.InvalidInput
	}
	if strings.ContainsAny(text, "=\r\n") { // Base64 would let them pass.
		return "", storageerr.InvalidInput
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "-", "="), " ", "+")
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || !utf8.Valid(key) {
		return "", storageerr.InvalidInput
	}
	return string(key), nil
}
