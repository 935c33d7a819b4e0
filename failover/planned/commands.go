package planned

import (
	"antipode/stamp/ranges"
)

// Commands are the commands of this package that nodes submit to each other.
func Commands() ranges.Commands {
	return ranges.Commands{
		kindDrained: func(body []byte) (ranges.Portable, error) { return parseDrained(body) },
		kindReached: func(body []byte) (ranges.Portable, error) { return parseReached(body) },
	}
}
