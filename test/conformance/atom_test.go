package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

const (
	dataSpace = "http://schemas.microsoft.com/ado/2007/08/dataservices"
	prefixes  = ` xmlns:d="` + dataSpace + `" xmlns:m="` + dataSpace + `/metadata"`
)

// atomFields are the headers of the Atom clients, of a version; an empty one is left out.
func atomFields(version string) []string {
	return []string{
		"X-Ms-Version", version, "Content-Type", "application/atom+xml", "Accept", "application/atom+xml,application/xml", "Accept-Charset", "UTF-8",
		"DataServiceVersion", "1.0;NetFx", "MaxDataServiceVersion", "1.0;NetFx",
	}
}

// atomEntry is an entry as the Atom clients send it, with elements of properties.
func atomEntry(properties string) string {
	return `<?xml version="1.0" encoding="utf-8" standalone="yes"?>` + "\n" + `<entry` + prefixes + ` xmlns="http://www.w3.org/2005/Atom">
  <title /><updated>2009-04-30T20:44:09.5789464Z</updated><author><name /></author><id />
  <content type="application/xml"><m:properties>` + properties + `</m:properties></content>
</entry>`
}

// hasEntry requires an entry as the body: the entity of the table of the case, with its other
// properties as elements (protocol/table.md 7).
func (a *answer) hasEntry(pk, rk, properties string) *answer {
	a.rig.Helper()
	requireEntry(a.rig, a.body, a.tag(), pk, rk, properties)
	return a
}

func requireEntry(r *rig, body, tag, pk, rk, properties string) {
	r.Helper()
	path := fmt.Sprintf("%s(PartitionKey='%s',RowKey='%s')", r.table, pk, rk)
	want := `<?xml version="1.0" encoding="utf-8" standalone="yes"?><entry xml:base="` + r.base() + `"` + prefixes +
		` m:etag="` + strings.ReplaceAll(tag, `"`, "&quot;") + `" xmlns="http://www.w3.org/2005/Atom">` +
		`<id>` + r.base() + path + `</id><title type="text"></title><updated>NOW</updated><author><name /></author>` +
		`<link rel="edit" title="` + r.table + `" href="` + path + `" /><category term="` + r.account + `.` + r.table + `" scheme="` + dataSpace + `/scheme" />` +
		`<content type="application/xml"><m:properties><d:PartitionKey>` + pk + `</d:PartitionKey><d:RowKey>` + rk + `</d:RowKey>` +
		`<d:Timestamp m:type="Edm.DateTime">` + stampOf(tag) + `</d:Timestamp>` + properties + `</m:properties></content></entry>`
	got := regexp.MustCompile(`>\s+<`).ReplaceAllString(body, "><")
	got = regexp.MustCompile(`<updated>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`).ReplaceAllString(got, "<updated>NOW")
	require.Equal(r, want, got)
}

// Cases 73 to 76: versions and formats.
func versionCases() []testCase {
	return []testCase{
		{73, "no version", withoutVersion},
		{74, "unknown version", unknownVersion},
		{75, "formats that a version does not have", refusedFormats},
		{76, "levels of metadata", levels},
	}
}

func withoutVersion(r *rig) {
	r.create()
	a := r.do("POST", "/"+r.table, atomEntry(`<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey><d:Timestamp m:type="Edm.DateTime">0001-01-01T00:00:00</d:Timestamp>`+
		`<d:Text>a &lt; b</d:Text><d:Rating m:type="Edm.Int32">9</d:Rating><d:None m:type="Edm.Int32" m:null="true" />`), atomFields("")...)
	require.True(r, strings.HasPrefix(a.request.header.Get("Authorization"), sharedKeyLite+" "))
	const stored = `<d:Text>a &lt; b</d:Text><d:Rating m:type="Edm.Int32">9</d:Rating>`
	a.is(http.StatusCreated).hasEntry("p", "r", stored)
	require.Equal(r, r.base()+r.path("p", "r")[1:], a.header.Get("Location"))
	require.NotContains(r, a.header, "X-Ms-Version")
	require.Equal(r, a.tag(), r.read(r.path("p", "r"), atomFields("")...).is(http.StatusOK).hasEntry("p", "r", stored).tag())
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"Text":"a < b","Rating":9`)
	r.read(r.path("p", "none"), atomFields("")...).fails(http.StatusNotFound, "ResourceNotFound", resourceNotFound)

	b := r.read("/"+r.table+"()?$top=1", atomFields("")...).is(http.StatusOK)
	require.Contains(r, b.body, `<feed xml:base="`+r.base()+`"`)
	require.Contains(r, b.body, `<entry m:etag="`+strings.ReplaceAll(a.tag(), `"`, "&quot;")+`">`)
	b = r.read("/Tables('"+r.table+"')", atomFields("")...).is(http.StatusOK)
	require.Contains(r, b.body, `<d:TableName>`+r.table+`</d:TableName>`)
	require.NotContains(r, b.body, "m:etag")
}

func unknownVersion(r *rig) {
	const message = "The value for one of the HTTP headers is not in the correct format."
	r.create()
	for _, version := range []string{"2008-99-99", "2019-02-03", "x"} {
		for _, accept := range []string{"application/json", "application/atom+xml,application/xml"} {
			r.read("/"+r.table, "X-Ms-Version", version, "Accept", accept).fails(http.StatusBadRequest, "InvalidHeaderValue", message)
		}
	}
}

func refusedFormats(r *rig) {
	r.create()
	entry := atomEntry(`<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey>`)
	for _, version := range []string{"2015-12-11", latest} {
		r.do("POST", "/"+r.table, entry, "X-Ms-Version", version, "Content-Type", "application/atom+xml", "Accept", "application/json").
			fails(http.StatusUnsupportedMediaType, "AtomFormatNotSupported", "")
		r.read("/"+r.table, "X-Ms-Version", version, "Accept", "application/atom+xml").fails(http.StatusUnsupportedMediaType, "AtomFormatNotSupported", "")
	}
	r.do("POST", "/"+r.table, entity("p", "r", ""), "X-Ms-Version", "2012-02-12", "Accept", "application/atom+xml").
		fails(http.StatusUnsupportedMediaType, "JsonFormatNotSupported", "")
	r.read("/"+r.table, "Accept", "application/json;odata=verbose").fails(http.StatusUnsupportedMediaType, "JsonVerboseFormatNotSupported", "")
	require.Empty(r, r.read("/"+r.table).keys())

	// In between both are served, by Content-Type, and by $format or Accept.
	r.do("POST", "/"+r.table, entry, "X-Ms-Version", "2013-08-15", "Content-Type", "application/atom+xml", "Accept", "application/json").
		is(http.StatusCreated).has("p", "r", "")
	r.read(r.path("p", "r"), "X-Ms-Version", "2013-08-15", "Accept", "").is(http.StatusOK).hasEntry("p", "r", "")
}

func levels(r *rig) {
	r.create()
	const sent = `,"Rating":9,"Half":0.5,"Yes":true,"Text":"t","Big@odata.type":"Edm.Int64","Big":"9007199254740993","W@odata.type":"Edm.DateTime",` +
		`"W":"2020-01-01T01:02:00.12Z","G@odata.type":"Edm.Guid","G":"c9da6455-213d-42c9-9a79-3e9149a57833","B@odata.type":"Edm.Binary","B":"AAH/",` +
		`"N@odata.type":"Edm.Double","N":"NaN"`
	rk := "o'r k"
	tag := r.added("p", rk, sent).tag()
	path := "Case76(PartitionKey='p',RowKey='o''r%20k')"
	bare := regexp.MustCompile(`"\w+@odata\.type":"[\w.]+",`).ReplaceAllString(sent, "")
	keys := `"PartitionKey":"p","RowKey":"o'r k",`
	minimal := `"odata.etag":` + quoted(tag) + `,` + keys + `"Timestamp":"` + stampOf(tag) + `"` + sent + `}`
	full := `"odata.type":"` + r.account + `.Case76","odata.id":"` + r.base() + path + `","odata.etag":` + quoted(tag) + `,"odata.editLink":"` + path + `",` + keys +
		`"Timestamp@odata.type":"Edm.DateTime","Timestamp":"` + stampOf(tag) + `"` + sent + `}`
	none := `{` + keys + `"Timestamp":"` + stampOf(tag) + `"` + bare + `}`
	metadata := `{"odata.metadata":"` + r.base() + `$metadata#Case76`
	for level, want := range map[string][2]string{
		"nometadata":      {none, `{"value":[` + none + `]}`},
		"minimalmetadata": {metadata + `/@Element",` + minimal, metadata + `","value":[{` + minimal + `]}`},
		"fullmetadata":    {metadata + `/@Element",` + full, metadata + `","value":[{` + full + `]}`},
	} {
		other := "application/json;odata=fullmetadata"
		if level == "fullmetadata" {
			other = "application/json;odata=nometadata"
		}
		for _, fields := range [][2]string{
			{"", "application/json;odata=" + level},
			{"", "application/json; odata=" + level},
			{"?$format=application/json;odata=" + level, other},
			{"?$format=application/json;odata=" + level, "application/atom+xml"},
		} {
			requireJSONText(r, want[0], r.read("/"+path+fields[0], "Accept", fields[1]).is(http.StatusOK).body)
			requireJSONText(r, want[1], r.read("/Case76()"+fields[0], "Accept", fields[1]).is(http.StatusOK).body)
		}
	}
	for _, accept := range []string{"application/json", "*/*", ""} {
		requireJSONText(r, metadata+`/@Element",`+minimal, r.read("/"+path, "Accept", accept).is(http.StatusOK).body)
	}
	r.tableLevels()
}

// tableLevels checks the documents of tables at the levels of metadata.
func (r *rig) tableLevels() {
	one := `"odata.type":"` + r.account + `.Tables","odata.id":"` + r.base() + `Tables('Case76')","odata.editLink":"Tables('Case76')","TableName":"Case76"}`
	metadata := `{"odata.metadata":"` + r.base() + `$metadata#Tables`
	for level, want := range map[string][2]string{
		"nometadata":      {`{"TableName":"Case76"}`, `{"value":[{"TableName":"Case76"}]}`},
		"minimalmetadata": {metadata + `/@Element","TableName":"Case76"}`, metadata + `","value":[{"TableName":"Case76"}]}`},
		"fullmetadata":    {metadata + `/@Element",` + one, metadata + `","value":[{` + one + `]}`},
	} {
		requireJSONText(r, want[0], r.read("/Tables('case76')", "Accept", "application/json;odata="+level).is(http.StatusOK).body)
		requireJSONText(r, want[1], r.read("/Tables?$filter=TableName%20eq%20'Case76'", "Accept", "application/json;odata="+level).is(http.StatusOK).body)
	}
}
