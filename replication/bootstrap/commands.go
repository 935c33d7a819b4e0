package bootstrap

import (
	"antipode/stamp/ranges"
)

// Commands are the commands of this package that nodes submit to each other.
func Commands() ranges.Commands {
	return ranges.Commands{
		kindSalvageRows: func(body []byte) (ranges.Portable, error) { return parseSalvageRows(body) },
	}
}
