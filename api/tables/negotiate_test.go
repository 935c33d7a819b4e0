package tables

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/api/tables/atom"
	"antipode/api/tables/json"
	"antipode/services/storageerr"
)

// The form of an error is that of the answer, by version and Accept (2.1, 2.4, 8.1); of a
// version that is none it is what Accept asks for.
func TestAtomErrors(t *testing.T) {
	t.Parallel()
	const atom, json, both = "application/atom+xml,application/xml", "application/json;odata=nometadata", "application/json, application/atom+xml"
	for _, tc := range []struct {
		version        protocol.Version
		accept, format string
		known, want    bool
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
		{"2015-07-08", "*/*, " + json, "", true, true},
		{"2015-07-08", "application/json;odata=verbose", "", true, false},
		{"2015-07-08", "image/png", "", true, true},
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

// Section 2.4, A.75, A.76.
//
// Capability: Clients: Tables of every version since the 2008 preview.
func TestNegotiate(t *testing.T) {
	t.Parallel()
	const now, middle, old = "2019-02-02", "2013-08-15", "2012-02-12"
	for _, tc := range []struct {
		version        protocol.Version
		accept, format string
		want           codec
		err            error
	}{
		{now, "", "", json.MinimalMetadata, nil},
		{now, "*/*", "", json.MinimalMetadata, nil},
		{now, "application/json", "", json.MinimalMetadata, nil},
		{now, "application/json;odata=nometadata", "", json.NoMetadata, nil},
		{now, "application/json; odata=fullmetadata", "", json.FullMetadata, nil},
		{now, "application/json; odata=minimalmetadata; charset=utf-8;q=0.5", "", json.MinimalMetadata, nil},
		{now, "text/html, application/json;odata=nometadata", "", json.NoMetadata, nil},
		{now, "application/json;odata=verbose", "", nil, storageerr.JSONVerboseNotSupport},
		{now, "application/json;odata=verbose,application/json", "", json.MinimalMetadata, nil},
		{now, "application/xml", "", json.MinimalMetadata, nil},
		{now, "application/atom+xml,application/xml", "", nil, storageerr.AtomNotSupported},
		{now, "application/atom+xml,*/*", "", json.MinimalMetadata, nil},
		{now, "text/html", "", nil, storageerr.MediaTypeNotSupported},
		{now, "application/json;odata=huge", "", nil, storageerr.MediaTypeNotSupported},
		{now, "application/atom+xml", "application/json;odata=fullmetadata", json.FullMetadata, nil},
		{now, "application/json", "json", json.MinimalMetadata, nil},
		{now, "application/json", "atom", nil, storageerr.AtomNotSupported},
		{now, "application/json", "application/atom xml", nil, storageerr.AtomNotSupported},
		{now, "", "junk", nil, storageerr.MediaTypeNotSupported},
		{middle, "application/json;odata=nometadata", "", json.NoMetadata, nil},
		{middle, "", "", atom.Codec{}, nil},
		{middle, "*/*", "", atom.Codec{}, nil},
		{middle, "*/*,application/json", "", atom.Codec{}, nil},
		{middle, "text/html,application/atom+xml,application/json", "", atom.Codec{}, nil},
		{middle, "application/json;odata=verbose", "", nil, storageerr.JSONVerboseNotSupport},
		{middle, "application/json;odata=verbose, application/atom+xml", "", atom.Codec{}, nil},
		{middle, "text/html", "", nil, storageerr.MediaTypeNotSupported},
		{middle, "application/json", "atom", atom.Codec{}, nil},
		{middle, "application/json", "application/atom+xml", atom.Codec{}, nil},
		{"2015-07-08", "application/atom+xml", "", atom.Codec{}, nil},
		{"2015-12-11", "application/atom+xml", "", nil, storageerr.AtomNotSupported},
		{"2015-12-11", "", "", json.MinimalMetadata, nil},
		{middle, "application/json,*/*", "", json.MinimalMetadata, nil},
		{middle, "*/*", "json", json.MinimalMetadata, nil},
		{middle, "application/xml", "", atom.Codec{}, nil},
		{old, "application/json", "", atom.Codec{}, nil},
		{old, "image/png", "json", atom.Codec{}, nil},
		{old, "application/atom+xml,application/xml", "", atom.Codec{}, nil},
		{"", "", "", atom.Codec{}, nil},
	} {
		got, err := negotiate(tc.version, tc.accept, tc.format)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%q %q %q: %v, %v", tc.version, tc.accept, tc.format, got, err)
		}
	}
	for _, tc := range []struct {
		version     protocol.Version
		contentType string
		want        codec
		err         error
	}{
		{now, "application/json", json.MinimalMetadata, nil},
		{now, "", json.NoMetadata, nil},
		{now, `application/json;charset="utf-8";odata=nometadata`, json.NoMetadata, nil},
		{now, "application/json;odata=verbose", nil, storageerr.JSONVerboseNotSupport},
		{now, "application/atom+xml;type=entry", nil, storageerr.AtomNotSupported},
		{"2015-12-11", "application/atom+xml", nil, storageerr.AtomNotSupported},
		{now, "text/plain", nil, storageerr.MediaTypeNotSupported},
		{middle, "application/json", json.MinimalMetadata, nil},
		{middle, "", json.NoMetadata, nil},
		{middle, "application/json;odata=verbose", nil, storageerr.JSONVerboseNotSupport},
		{middle, "application/atom+xml", atom.Codec{}, nil},
		{old, "application/json", nil, storageerr.JSONNotSupported},
		{old, "application/json;odata=verbose", nil, storageerr.JSONNotSupported},
		{old, `application/atom+xml;type=entry;charset="utf-8"`, atom.Codec{}, nil},
		{old, "application/xml", atom.Codec{}, nil},
		{old, "text/plain", nil, storageerr.MediaTypeNotSupported},
		{"", "", atom.Codec{}, nil},
	} {
		got, err := bodyCodec(tc.version, tc.contentType)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%q %q: %v, %v", tc.version, tc.contentType, got, err)
		}
	}
	if got := json.MinimalMetadata.ContentType(); got != "application/json;odata=minimalmetadata;streaming=true;charset=utf-8" {
		t.Error(got)
	}
}

// Any Accept, $format and Content-Type give a level or 415, and the type of an answer
// asks for the very level it is of.
func FuzzNegotiate(f *testing.F) {
	f.Add("2019-02-02", "application/json; odata=minimalmetadata", "")
	f.Add("2013-08-15", "application/atom+xml,*/*;q=0.1", "json")
	f.Add("", "application/json;odata=verbose", "application/json;odata=nometadata;odata=fullmetadata")
	f.Fuzz(func(t *testing.T, text, accept, format string) {
		version := protocol.Version(text)
		form, err := negotiate(version, accept, format)
		if err != nil {
			e, known := storageerr.Of(err)
			require.True(t, known && e.Status == http.StatusUnsupportedMediaType, "%v", err)
		} else {
			again, err := negotiate(version, form.ContentType(), "")
			require.NoError(t, err)
			require.Equal(t, form, again)
			_, err = bodyCodec(version, form.ContentType())
			require.NoError(t, err)
		}
		if _, err := bodyCodec(version, accept); err != nil {
			e, known := storageerr.Of(err)
			require.True(t, known && e.Status == http.StatusUnsupportedMediaType, "%v", err)
		}
	})
}
