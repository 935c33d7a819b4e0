package accounts_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/apitest"
	"antipode/api/auth"
	"antipode/geo"
)

const propertiesTarget = "/acct/?restype=service&comp=properties"

// properties sends a Set Service Properties with a document, or asks for it with none.
func (r *rig) properties(s geo.Service, version, document string) (*http.Response, string) {
	r.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if document != "" {
		method, body = http.MethodPut, strings.NewReader(document)
	}
	hr, err := http.NewRequest(method, r.urls[s]+propertiesTarget, body)
	require.NoError(r.t, err)
	hr.Header.Set("x-ms-version", version)
	require.NoError(r.t, auth.Sign(hr, s, "acct", key, r.clock.Now()))
	resp, err := r.client.Do(hr)
	require.NoError(r.t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return resp, string(b)
}

const (
	xmlStart   = `<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>`
	xmlEnd     = `</StorageServiceProperties>`
	noLogs     = `<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>`
	logs       = `<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>`
	figures    = `<Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>365</Days></RetentionPolicy>`
	noFigures  = `<Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>`
	rule       = `<CorsRule><AllowedOrigins>http://a.test,http://b.test</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>500</MaxAgeInSeconds><ExposedHeaders>x-ms-request*,server</ExposedHeaders><AllowedHeaders>x-ms-meta-*,content-type</AllowedHeaders></CorsRule>`
	anyOrigin  = `<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>DELETE</AllowedMethods><MaxAgeInSeconds>0</MaxAgeInSeconds><ExposedHeaders></ExposedHeaders><AllowedHeaders></AllowedHeaders></CorsRule>`
	blobsAlone = `<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy><StaticWebsite><Enabled>false</Enabled></StaticWebsite>`
)

// S7 of protocol/service.md: what was set comes back as it was, in the order of the document; what a document does not
// name stays; an older version shows what it knows. Each service has its own.
func TestS7Properties(t *testing.T) {
	r := newRig(t)
	for _, s := range []geo.Service{geo.Blob, geo.Queue, geo.Table} {
		tail := ""
		if s == geo.Blob {
			tail = blobsAlone
		}
		get := func(version, want string) {
			t.Helper()
			resp, body := r.properties(s, version, "")
			require.Equal(t, 200, resp.StatusCode, body)
			require.Equal(t, "application/xml", resp.Header.Get("Content-Type"))
			require.Equal(t, xmlStart+want+xmlEnd, body)
		}
		set := func(version, document string) {
			t.Helper()
			resp, body := r.properties(s, version, document)
			require.Equal(t, 202, resp.StatusCode, body)
			require.Empty(t, body)
		}
		const newest, old = "2021-12-02", "2012-02-12"
		get(newest, noLogs+"<HourMetrics>"+noFigures+"</HourMetrics><MinuteMetrics>"+noFigures+"</MinuteMetrics><Cors></Cors>"+tail)
		all := logs + "<HourMetrics>" + figures + "</HourMetrics><MinuteMetrics>" + noFigures + "</MinuteMetrics><Cors>" + rule + anyOrigin + "</Cors>"
		set(newest, xmlStart+all+xmlEnd)
		get(newest, all+tail)
		get(old, logs+"<Metrics>"+figures+"</Metrics>")
		set(newest, xmlStart+"<MinuteMetrics>"+figures+"</MinuteMetrics>"+xmlEnd)
		get(newest, strings.Replace(all, noFigures, figures, 1)+tail)
		set(newest, xmlStart+"<Cors/>"+xmlEnd)
		set(newest, xmlStart+strings.ReplaceAll(logs, "true", "TRUE")+xmlEnd)
		set(old, xmlStart+"<Metrics>"+noFigures+"</Metrics>"+noLogs+xmlEnd)
		get(newest, noLogs+"<HourMetrics>"+noFigures+"</HourMetrics><MinuteMetrics>"+figures+"</MinuteMetrics><Cors></Cors>"+tail)
	}
	resp, body := r.properties(geo.Blob, "2021-12-02", xmlStart+"<DefaultServiceVersion>2013-08-15</DefaultServiceVersion>"+xmlEnd)
	require.Equal(t, 202, resp.StatusCode, body)
	_, body = r.properties(geo.Blob, "2021-12-02", "")
	require.Contains(t, body, "<DefaultServiceVersion>2013-08-15</DefaultServiceVersion><DeleteRetentionPolicy>")
	for _, s := range services { // Nothing of it is listed.
		_, listed := r.send(s, request{"GET", root(s), nil, nil})
		require.NotContains(t, listed, "<Name>")
		require.NotContains(t, listed, `"TableName"`)
	}
}

// What is no document of properties, and each limit of protocol/service.md 2.2, is refused and changes nothing.
func TestBadProperties(t *testing.T) {
	r := newRig(t)
	of := func(old, by string) string { return strings.Replace(logs, old, by, 1) }
	ruled := func(old, by string) string { return "<Cors>" + strings.Replace(rule, old, by, 1) + "</Cors>" }
	hours := func(old, by string) string {
		return "<HourMetrics>" + strings.Replace(figures, old, by, 1) + "</HourMetrics>"
	}
	many := func(n int, suffix string) string {
		return strings.TrimSuffix(strings.Repeat("a"+suffix+",", n), ",")
	}
	const fault, value, lacks = "InvalidXmlDocument", "InvalidXmlNodeValue", "MissingRequiredXmlNode"
	for _, c := range []struct{ document, code string }{
		{"x", fault},
		{"<Other/>", fault},
		{xmlStart + "x" + xmlEnd, fault},
		{xmlStart + "<Other/>" + xmlEnd, fault},
		{xmlStart + logs + logs + xmlEnd, fault},
		{`<!DOCTYPE a>` + strings.TrimPrefix(xmlStart, `<?xml version="1.0" encoding="utf-8"?>`) + xmlEnd, fault},
		{xmlStart + "<Metrics>" + figures + "</Metrics>" + xmlEnd, fault},
		{xmlStart + of("<Delete>true</Delete>", "") + xmlEnd, lacks},
		{xmlStart + of("1.0", "3.0") + xmlEnd, value},
		{xmlStart + of("true", "yes") + xmlEnd, value},
		{xmlStart + of("<Days>7</Days>", "") + xmlEnd, lacks},
		{xmlStart + of("<Days>7", "<Days>0") + xmlEnd, value},
		{xmlStart + of("<Days>7", "<Days>366") + xmlEnd, value},
		{xmlStart + hours("1.0", "2.0") + xmlEnd, value},
		{xmlStart + hours("<IncludeAPIs>true</IncludeAPIs>", "") + xmlEnd, lacks},
		{xmlStart + hours("<Enabled>true</Enabled>", "") + xmlEnd, lacks},
		{xmlStart + "<Cors>" + strings.Repeat(anyOrigin, 6) + "</Cors>" + xmlEnd, fault},
		{xmlStart + "<Cors>x</Cors>" + xmlEnd, fault},
		{xmlStart + "<Cors><Other/></Cors>" + xmlEnd, fault},
		{xmlStart + ruled("<MaxAgeInSeconds>500</MaxAgeInSeconds>", "") + xmlEnd, lacks},
		{xmlStart + ruled("500", "-1") + xmlEnd, value},
		{xmlStart + ruled("500", "x") + xmlEnd, value},
		{xmlStart + ruled("GET,PUT", "") + xmlEnd, value},
		{xmlStart + ruled("GET,PUT", "GET,BREW") + xmlEnd, value},
		{xmlStart + ruled("http://a.test,http://b.test", "") + xmlEnd, value},
		{xmlStart + ruled("http://a.test", many(65, "")) + xmlEnd, value},
		{xmlStart + ruled("http://a.test", strings.Repeat("a", 257)) + xmlEnd, value},
		{xmlStart + ruled("server", many(65, "")) + xmlEnd, value},
		{xmlStart + ruled("content-type", many(2, "*")) + xmlEnd, value},
		{xmlStart + ruled("content-type", strings.TrimSuffix(strings.Repeat(strings.Repeat("b", 200)+",", 11), ",")) + xmlEnd, fault},
		{xmlStart + "<DefaultServiceVersion>2013-08-15</DefaultServiceVersion>" + xmlEnd, fault},
		{strings.Repeat(" ", 256<<10+1), "RequestBodyTooLarge"},
	} {
		before := apitest.States(t, r.stamp, geo.Catalog)
		resp, body := r.properties(geo.Queue, "2021-12-02", c.document)
		require.Equal(t, c.code, resp.Header.Get("x-ms-error-code"), "%.600s: %s", c.document, body)
		require.Equal(t, before, apitest.States(t, r.stamp, geo.Catalog), "%.600s", c.document)
	}
	refused := func(s geo.Service, version, document, code string) {
		t.Helper()
		resp, body := r.properties(s, version, document)
		require.Equal(t, code, resp.Header.Get("x-ms-error-code"), body)
	}
	refused(geo.Table, "2021-12-02", xmlStart+of("1.0", "2.0")+xmlEnd, value)
	refused(geo.Queue, "2012-02-12", xmlStart+logs+xmlEnd, lacks)
	refused(geo.Queue, "2009-04-14", "", "InvalidQueryParameterValue")
	refused(geo.Blob, "2021-12-02", xmlStart+"<DefaultServiceVersion>never</DefaultServiceVersion>"+xmlEnd, value)
	refused(geo.Blob, "2021-12-02", xmlStart+"<DeleteRetentionPolicy><Enabled>true</Enabled><Days>1</Days></DeleteRetentionPolicy>"+xmlEnd, "NotImplemented")
	r.refused(geo.Blob, request{"PUT", "/mirror-secondary/?restype=service&comp=properties", set("Content-Length", "0"), nil}, 403, "InsufficientAccountPermissions")
}
