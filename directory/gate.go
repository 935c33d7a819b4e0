package directory

import (
	"maps"

	"antipode/directory/record"
	"antipode/stamp/ranges"
)

// Commands are the commands of this package that nodes submit to each other.
func Commands() ranges.Commands {
	all := ranges.Commands{
		record.KindForgetStreams: func(body []byte) (ranges.Portable, error) { return record.ParseForgetStreams(body) },
		record.KindSetGate:       func(body []byte) (ranges.Portable, error) { return record.ParseSetGate(body) },
		record.KindWipe:          func(body []byte) (ranges.Portable, error) { return record.ParseWipe(body) },
		kindFree:                 func(body []byte) (ranges.Portable, error) { return parseFree(body) },
		record.KindEndStreams:    func(body []byte) (ranges.Portable, error) { return record.ParseEndStreams(body, true) },
		record.KindDropStreams:   func(body []byte) (ranges.Portable, error) { return record.ParseEndStreams(body, false) },
		kindDrained:              func(body []byte) (ranges.Portable, error) { return parseDrained(body) },
		kindReached:              func(body []byte) (ranges.Portable, error) { return parseReached(body) },
		record.KindKeysOf:        func(body []byte) (ranges.Portable, error) { return record.ParseKeysOf(body) },
		kindFreeze:               func(body []byte) (ranges.Portable, error) { return parseFreeze(body) },
		kindThaw:                 func(body []byte) (ranges.Portable, error) { return parseThaw(body) },
		kindSetLocation:          func(body []byte) (ranges.Portable, error) { return parseSetLocation(body) },
		kindCheckPromotions:      func(body []byte) (ranges.Portable, error) { return parseCheckPromotions(body) },
		kindRaiseLevels:          func(body []byte) (ranges.Portable, error) { return parseRaiseLevels(body) },
		kindSalvageRows:          func(body []byte) (ranges.Portable, error) { return parseSalvageRows(body) },
		kindProbe:                func([]byte) (ranges.Portable, error) { return probe{}, nil },
	}
	maps.Copy(all, rejoinCommands())
	return all
}

// rejoinCommands are the commands of this package that nodes submit to each other.
func rejoinCommands() ranges.Commands {
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
