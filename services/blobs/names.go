package blobs

import (
	"strings"
	"unicode/utf8"

	"antipode/services/storageerr"
)

// Limits of names (protocol/blob.md 1.3).
const (
	containerNameMin = 3
	containerNameMax = 63
	blobNameUnitsMax = 1024 // UTF-16 code units
	segmentsMax      = 254
)

// ValidateContainer tests a container name: 3 to 63 of a-z, 0-9 and -, where a - has
// a letter or digit on both sides. System names are not valid: see SystemContainer.
func ValidateContainer(name string) error {
	if len(name) < containerNameMin || len(name) > containerNameMax {
		return storageerr.NameLengthOutOfRange
	}
	dash := true // A name may neither begin nor end with a dash.
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '-' && !dash:
			dash = true
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			dash = false
		default:
			return storageerr.InvalidResourceName
		}
	}
	if dash {
		return storageerr.InvalidResourceName
	}
	return nil
}

// SystemContainer reports whether name is one of the containers that the protocol
// keeps for itself. None of them is built yet.
func SystemContainer(name string) bool {
	switch name {
	case "$root", "$web", "$logs", "$blobchangefeed":
		return true
	}
	return false
}

// ParseBlobName returns the blob name of a decoded path: a backslash becomes a slash.
func ParseBlobName(decoded string) (string, error) {
	name := strings.ReplaceAll(decoded, `\`, "/")
	if !utf8.ValidString(name) {
		return "", storageerr.InvalidResourceName
	}
	units := 0
	for _, r := range name {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return "", storageerr.InvalidResourceName
		}
		units++
		if r > 0xffff {
			units++
		}
	}
	if units == 0 || units > blobNameUnitsMax {
		return "", storageerr.NameLengthOutOfRange
	}
	if strings.Count(name, "/") >= segmentsMax {
		return "", storageerr.InvalidResourceName
	}
	return name, nil
}
