package catalog

import "antipode/services/storageerr"

// Limits of the names of blob containers and queues (protocol/blob.md 1.3, protocol/queue.md 2).
const (
	nameMin = 3
	nameMax = 63
)

// ValidateName tests the name of a blob container or a queue: 3 to 63 of a-z, 0-9 and -, where a -
// has a letter or digit on both sides. Names that a service keeps for itself are not valid.
func ValidateName(name string) error {
	if len(name) < nameMin || len(name) > nameMax {
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
