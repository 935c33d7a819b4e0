package wire

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strconv"
	"unicode/utf8"

	"antipode/services/storageerr"
)

// PageItemsMax is the default and the cap of maxresults (protocol/blob.md S1, 7.1).
const PageItemsMax = 5000

// Page is the part of a listing that a request asks for.
type Page struct {
	Prefix string
	// From is the first name that may be listed; empty for all.
	From  string
	Items int
}

// ParsePage reads the values of prefix, marker and maxresults; an empty one is absent. foreign is the error for a marker
// that this service did not give.
func ParsePage(prefix, marker, maxResults string, foreign error) (Page, error) {
	q := Page{Prefix: prefix, Items: PageItemsMax}
	if !utf8.ValidString(prefix) {
		return q, BadParameter("prefix", prefix, "The value is not UTF-8.")
	}
	if marker != "" {
		name, ok := ParseMarker(marker)
		if !ok {
			return q, foreign
		}
		q.From = name
	}
	if maxResults == "" {
		return q, nil
	}
	n, err := strconv.ParseInt(maxResults, 10, 64) // Out of its range it is the nearest number.
	if errors.Is(err, strconv.ErrSyntax) {
		return q, BadParameter("maxresults", maxResults, "The value is not a number.")
	}
	if n <= 0 {
		return q, storageerr.OutOfRangeQueryParam.With("QueryParameterName", "maxresults", "QueryParameterValue", maxResults,
			"MinimumAllowed", "1", "MaximumAllowed", strconv.Itoa(PageItemsMax))
	}
	q.Items = int(min(n, PageItemsMax))
	return q, nil
}

// markerVersion is the first byte of a marker. It is not durable: a client may keep a
// marker for as long as it lists.
const markerVersion = 1

// markerAtVersion is that of a marker with a number ahead of the name.
const markerAtVersion = 2

// NewMarkerAt is the marker of the page that begins within what a name stands for, at a number above zero.
func NewMarkerAt(name string, at uint64) string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64([]byte{markerAtVersion}, at), name...))
}

// ParseMarkerAt is the inverse of NewMarkerAt, and of NewMarker with zero; ok is false for any other text.
func ParseMarkerAt(text string) (name string, at uint64, ok bool) {
	if name, ok := ParseMarker(text); ok {
		return name, 0, true
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 10 || b[0] != markerAtVersion || !utf8.Valid(b[9:]) {
		return "", 0, false
	}
	name, at = string(b[9:]), binary.BigEndian.Uint64(b[1:])
	return name, at, at > 0 && NewMarkerAt(name, at) == text // Base64 skips line ends.
}

// NewMarker is the marker of the page that begins at name; empty for none. It is
// opaque to clients (protocol/blob.md 7.1), and text that a URL and XML carry as it is.
func NewMarker(name string) string {
	if name == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append([]byte{markerVersion}, name...))
}

// ParseMarker is the inverse of NewMarker; ok is false for any other text.
func ParseMarker(text string) (name string, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 2 || b[0] != markerVersion || !utf8.Valid(b[1:]) {
		return "", false
	}
	name = string(b[1:])
	return name, NewMarker(name) == text // Base64 skips line ends.
}
