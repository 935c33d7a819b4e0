package protocol

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
)

// The list is strictly ordered, holds only dates, and ends in Newest; a listed
// date serves itself, and what is not listed is refused unless it is newer.
func TestEffective(t *testing.T) {
	if !slices.IsSorted(versions[:]) || len(slices.Compact(slices.Clone(versions[:]))) != len(versions) {
		t.Error("the list is not strictly ordered")
	}
	for _, v := range versions {
		if !wire.IsDate(string(v)) {
			t.Errorf("%q is no date", v)
		}
		if got, err := Effective(string(v)); got != v || err != nil {
			t.Errorf("Effective(%s) = %s, %v", v, got, err)
		}
	}
	if versions[len(versions)-1] != Newest {
		t.Error("Newest is not the last of the list")
	}
	for _, newer := range []string{"2027-03-08", "2028-02-29", "9999-12-31"} {
		if got, err := Effective(newer); got != Newest || err != nil {
			t.Errorf("Effective(%s) = %s, %v, want the newest", newer, got, err)
		}
	}
	for _, bad := range []string{
		"", "2008-99-99", "2008-10-26", "2013-08-16", "2027-02-29", "2027-13-01", "2028-00-10", "2028-01-32", "2028-1-1",
		"2028-01-01 ", "x", "2028-01-0\u0661", "2028/01/01", "20280101",
	} {
		_, err := Effective(bad)
		e, ok := storageerr.Of(err)
		if !ok || e.Row != storageerr.InvalidHeaderValue || len(e.Details) != 2 ||
			e.Details[0].Value != "x-ms-version" || e.Details[1].Value != bad {
			t.Errorf("Effective(%q): %v", bad, err)
		}
	}
}

// The union of what the three spec files name is accepted.
func TestVersionsOfSpec(t *testing.T) {
	const table = "2009-04-14 2009-07-17 2009-09-19 2011-08-18 2012-02-12 2013-08-15 2014-02-14 2015-02-21 2015-04-05 2015-07-08 2015-12-11 2016-05-31 2017-04-17 2017-07-29 2017-11-09 2018-03-28 2018-11-09 2019-02-02 2019-07-07 2019-10-10 2019-12-12 2020-02-10 2020-04-08 2020-06-12 2020-08-04 2020-10-02 2020-12-06 2021-02-12 2021-04-10 2021-06-08 2021-08-06 2021-10-04 2021-12-02 2022-11-02 2023-01-03 2023-08-03 2023-11-03 2024-02-04 2024-05-04 2024-08-04 2024-11-04 2025-01-05 2025-05-05 2025-07-05 2025-11-05 2026-02-06 2026-04-06 2026-06-06"
	const blob = "2008-10-27 2023-05-03 2026-10-06 2026-12-06 2027-03-07"
	listed := append(strings.Fields(table), strings.Fields(blob)...)
	slices.Sort(listed)
	var have []string
	for _, v := range versions {
		have = append(have, string(v))
	}
	if !slices.Equal(listed, have) {
		t.Errorf("list differs from the spec:\n got %v\nwant %v", have, listed)
	}
}

// Without the header each service has its own rule.
func TestServiceVersion(t *testing.T) {
	tests := []struct {
		service    geo.Service
		header     string
		authorized bool
		want       Version
		err        error
	}{
		{geo.Table, "", true, Preview, nil},
		{geo.Table, "", false, Preview, nil},
		{geo.Queue, "", true, Version20090919, nil},
		{geo.Blob, "", false, Version20090919, nil},
		{geo.Blob, "", true, "", storageerr.MissingRequiredHeader},
		{geo.Blob, "2019-02-02", true, Version20190202, nil},
		{geo.Table, "2019-02-03", true, "", storageerr.InvalidHeaderValue},
	}
	for _, tt := range tests {
		got, err := ServiceVersion(tt.service, tt.header, tt.authorized)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s %q: %s, %v", tt.service, tt.header, got, err)
		}
	}
}
