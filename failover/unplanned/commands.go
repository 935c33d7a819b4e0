package unplanned

import (
	"antipode/stamp/ranges"
)

// Commands are the commands of this package that nodes submit to each other.
func Commands() ranges.Commands {
	return ranges.Commands{
		kindFreeze: func(body []byte) (ranges.Portable, error) { return parseFreeze(body) },
		kindThaw:   func(body []byte) (ranges.Portable, error) { return parseThaw(body) },
	}
}
