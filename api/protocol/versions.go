package protocol

import (
	"slices"

	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
)

// HeaderVersion is the canonical form of x-ms-version in an http.Header.
const HeaderVersion = "X-Ms-Version"

// Version is a service version: the date the x-ms-version header carries. Dates
// of this form compare as text, so the operators < and >= mean older and newer.
// The zero value is [Preview].
type Version string

// The versions at which the wire changed in a way this server distinguishes.
const (
	// Preview is the table service of 2008, whose clients sent no version.
	Preview         Version = ""
	Version20090414 Version = "2009-04-14"
	Version20090919 Version = "2009-09-19"
	Version20110818 Version = "2011-08-18"
	Version20120212 Version = "2012-02-12"
	Version20130815 Version = "2013-08-15"
	Version20140214 Version = "2014-02-14"
	Version20150221 Version = "2015-02-21"
	Version20150405 Version = "2015-04-05"
	Version20151211 Version = "2015-12-11"
	Version20160531 Version = "2016-05-31"
	Version20170729 Version = "2017-07-29"
	Version20190202 Version = "2019-02-02"
	Version20191212 Version = "2019-12-12"
	Version20201206 Version = "2020-12-06"
	// Newest is the last date of the list. Later dates are served as this one.
	Newest Version = "2027-03-07"
)

// versions is the one list of published dates, oldest first: the union of
// protocol/table.md 2.2, protocol/blob.md 3.2 and protocol/queue.md 3. Dates that change
// nothing are in it too, so that no client's constant is locked out.
//
//nolint:gochecknoglobals // a table, never written
var versions = [...]Version{
	"2008-10-27", Version20090414, "2009-07-17", Version20090919, Version20110818,
	Version20120212, Version20130815, Version20140214, Version20150221, Version20150405,
	"2015-07-08", Version20151211, Version20160531, "2017-04-17", Version20170729,
	"2017-11-09", "2018-03-28", "2018-11-09", Version20190202, "2019-07-07",
	"2019-10-10", Version20191212, "2020-02-10", "2020-04-08", "2020-06-12",
	"2020-08-04", "2020-10-02", Version20201206, "2021-02-12", "2021-04-10",
	"2021-06-08", "2021-08-06", "2021-10-04", "2021-12-02", "2022-11-02",
	"2023-01-03", "2023-05-03", "2023-08-03", "2023-11-03", "2024-02-04",
	"2024-05-04", "2024-08-04", "2024-11-04", "2025-01-05", "2025-05-05",
	"2025-07-05", "2025-11-05", "2026-02-06", "2026-04-06", "2026-06-06",
	"2026-10-06", "2026-12-06", Newest,
}

// Effective returns the version that serves a request with this x-ms-version
// value. A listed date serves itself; a well-formed date after the list's last is
// served as the last, so that a client newer than this server works. Any other
// text, a date between two listed ones included, is 400 InvalidHeaderValue. The
// result never holds on to the memory of header.
func Effective(header string) (Version, error) {
	i, found := slices.BinarySearch(versions[:], Version(header))
	switch {
	case found:
		return versions[i], nil
	case i == len(versions) && wire.IsDate(header):
		return Newest, nil
	}
	return "", wire.BadHeader("x-ms-version", header)
}

// ServiceVersion is Effective with the service's rule for a request that sends no
// version, or an empty one. Authorized reports that the request carries an
// Authorization header: then blobs demand a version (protocol/blob.md 3.1). Tables
// answer as the 2008 preview, everything else as 2009-09-19.
func ServiceVersion(s geo.Service, header string, authorized bool) (Version, error) {
	switch {
	case header != "":
		return Effective(header)
	case s == geo.Table:
		return Preview, nil
	case s == geo.Blob && authorized:
		return "", storageerr.MissingRequiredHeader.With("HeaderName", "x-ms-version")
	}
	return Version20090919, nil
}
