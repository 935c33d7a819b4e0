package geo

import (
	"errors"
	"strings"
)

// Zone is a DNS zone under which accounts have their host names,
// {account}.{service}.{zone}: lower case, without a dot at the end.
type Zone string

// LocalZone is the zone that every machine resolves to itself (RFC 6761).
const LocalZone Zone = "localhost"

// ErrZone reports a text that is no DNS zone.
var ErrZone = errors.New("want a DNS name such as storage.example: labels of letters, digits and hyphens, the last one not a number")

// ParseZone reads a zone as people write it: in any case, perhaps with a dot at the end.
// The error is ErrZone. An IP address is no zone.
func ParseZone(text string) (Zone, error) {
	name := strings.TrimSuffix(text, ".")
	if len(name) > 253 {
		return "", ErrZone
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return "", ErrZone
		}
	}
	if strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return "", ErrZone
	}
	return Zone(strings.ToLower(name)), nil
}
