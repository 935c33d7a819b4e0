package blobs

import (
	"strings"
	"unicode/utf8"

	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// Limits of names of blobs (protocol/blob.md 1.3).
const (
	blobNameUnitsMax = 1024 // UTF-16 code units
	segmentsMax      = 254
)

// Containers with names that the rule of the others does not allow (protocol/blob.md 1.3).
const (
	// Root is the container of a path of one segment. Clients make it, and Web, as they make any other.
	Root = "$root"
	Web  = "$web"
	// Logs and ChangeFeed are reserved.
	Logs       = "$logs"
	ChangeFeed = "$blobchangefeed"
)

// ValidateContainer tests the name of a blob container.
func ValidateContainer(name string) error {
	switch name {
	case Root, Web, Logs, ChangeFeed:
		return nil
	}
	return catalog.ValidateName(name)
}

// Reserved reports whether only the service itself makes a container, and writes in it. Nothing does so yet: there is
// none.
func Reserved(container string) bool { return container == Logs || container == ChangeFeed }

// ParseBlobName returns the blob name of a decoded path in a container: a backslash becomes a slash, which a name in
// the root container does not have.
func ParseBlobName(container, decoded string) (string, error) {
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
	if container == Root && strings.Contains(name, "/") {
		return "", storageerr.InvalidURI
	}
	return name, nil
}
