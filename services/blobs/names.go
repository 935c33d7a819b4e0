package blobs

import (
	"strings"
	"unicode/utf8"

	"antipode/services/storageerr"
)

// Limits of names of blobs (protocol/blob.md 1.3).
const (
	blobNameUnitsMax = 1024 // UTF-16 code units
	segmentsMax      = 254
)

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
