package odata

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The form of an error is that of the answer, by version and Accept (2.1, 2.4, 8.1); of a
// version that is none it is what Accept asks for.
func TestAtomErrors(t *testing.T) {
	const atom, json, both = "application/atom+xml,application/xml", "application/json;odata=nometadata", "application/json, application/atom+xml"
	for _, tc := range []struct {
		version, accept, format string
		known, want             bool
	}{
		{"", "", "", true, true},
		{"", json, "", true, true},
		{"2012-02-12", "*/*", "", true, true},
		{"2013-08-15", "", "", true, true},
		{"2013-08-15", "*/*", "", true, true},
		{"2013-08-15", atom, "", true, true},
		{"2013-08-15", json, "", true, false},
		{"2013-08-15", both, "", true, false},
		{"2015-07-08", json, "atom", true, true},
		{"2015-07-08", atom, "json", true, false},
		{"2015-12-11", atom, "", true, false},
		{"2019-02-02", atom, "atom", true, false},
		{"2008-99-99", atom, "", false, true},
		{"2008-99-99", json, "", false, false},
		{"2008-99-99", "", "", false, false},
		{"2008-99-99", "*/*", "", false, false},
		{"9999-99-99", "image/png", "", false, false},
	} {
		require.Equal(t, tc.want, AtomErrors(tc.version, tc.known, tc.accept, tc.format), "%+v", tc)
	}
}
