package rejoin

import (
	"antipode/stamp/ranges"
)

// Commands are the commands of this package that nodes submit to each other.
func Commands() ranges.Commands {
	return ranges.Commands{
		kindAgain:     func(body []byte) (ranges.Portable, error) { return parseAgain(body) },
		kindOpenTaken: func(body []byte) (ranges.Portable, error) { return parseOpenTaken(body) },
		kindKeepLost:  func(body []byte) (ranges.Portable, error) { return parseKeepLost(body) },
		kindRewound:   func(body []byte) (ranges.Portable, error) { return parseRewound(body) },
		kindLostRows:  func(body []byte) (ranges.Portable, error) { return parseLostRowsAt(body) },
		kindRejoin:    func(body []byte) (ranges.Portable, error) { return parseRejoin(body) },
		kindRegain:    func(body []byte) (ranges.Portable, error) { return parseRegain(body) },
		kindFollow:    func(body []byte) (ranges.Portable, error) { return parseFollow(body) },
	}
}
