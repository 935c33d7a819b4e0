package directory

import (
	"maps"

	"antipode/directory/record"
	"antipode/failover/planned"
	"antipode/failover/rejoin"
	"antipode/failover/unplanned"
	"antipode/replication/bootstrap"
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
		record.KindKeysOf:        func(body []byte) (ranges.Portable, error) { return record.ParseKeysOf(body) },
		kindSetLocation:          func(body []byte) (ranges.Portable, error) { return parseSetLocation(body) },
		kindCheckPromotions:      func(body []byte) (ranges.Portable, error) { return parseCheckPromotions(body) },
		kindRaiseLevels:          func(body []byte) (ranges.Portable, error) { return parseRaiseLevels(body) },
		kindProbe:                func([]byte) (ranges.Portable, error) { return probe{}, nil },
	}
	maps.Copy(all, rejoin.Commands())
	maps.Copy(all, unplanned.Commands())
	maps.Copy(all, planned.Commands())
	maps.Copy(all, bootstrap.Commands())
	return all
}
