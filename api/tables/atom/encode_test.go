package atom

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// stamp is 2009-04-30T20:44:09.5789464Z, updated 2009-04-30T20:44:10.9Z.
const (
	stamp   geo.Timestamp = 12411242495789464
	updated geo.Timestamp = 12411242509000000
)

// everyType has one property of each type.
func everyType(t testing.TB) []byte {
	t.Helper()
	b := entity.Build(nil)
	for _, err := range []error{
		b.AddString("Text", `a<b>&"'`), b.AddInt32("Rating", 9), b.AddInt64("Big", 9007199254740993), b.AddDouble("D", 1),
		b.AddBoolean("T", true), b.AddDateTime("W", int64(stamp.Ticks())), b.AddGUID("G", [16]byte{0xc9, 15: 1}), b.AddBinary("B", []byte{0, 1, 255}),
		b.AddString("Empty", ""), b.AddString("Blanks", " x\n"),
	} {
		require.NoError(t, err)
	}
	return b.Bytes()
}

func blogs() *odata.Set {
	return &odata.Set{Base: "http://acct.table.example.net/", Account: "acct", Table: "Blogs", Updated: updated}
}

const (
	head    = `<?xml version="1.0" encoding="utf-8" standalone="yes"?>`
	spaces  = ` xml:base="http://acct.table.example.net/" xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"`
	inSpace = ` xmlns="http://www.w3.org/2005/Atom"`
	etag    = ` m:etag="W/&quot;datetime'2009-04-30T20%3A44%3A09.5789464Z'&quot;"`
	link    = `<title type="text"></title><updated>2009-04-30T20:44:10Z</updated><author><name /></author>` +
		`<link rel="edit" title="Blogs" href="Blogs(PartitionKey='Channel_19',RowKey='O''H%20%3C')" />` +
		`<category term="acct.Blogs" scheme="http://schemas.microsoft.com/ado/2007/08/dataservices/scheme" />`
	body = `><id>http://acct.table.example.net/Blogs(PartitionKey='Channel_19',RowKey='O''H%20%3C')</id>` + link +
		`<content type="application/xml"><m:properties>` +
		`<d:PartitionKey>Channel_19</d:PartitionKey><d:RowKey>O'H &lt;</d:RowKey>` +
		`<d:Timestamp m:type="Edm.DateTime">2009-04-30T20:44:09.5789464Z</d:Timestamp>` +
		`<d:Text>a&lt;b&gt;&amp;"'</d:Text><d:Rating m:type="Edm.Int32">9</d:Rating><d:Big m:type="Edm.Int64">9007199254740993</d:Big>` +
		`<d:D m:type="Edm.Double">1</d:D><d:T m:type="Edm.Boolean">true</d:T><d:W m:type="Edm.DateTime">2009-04-30T20:44:09.5789464Z</d:W>` +
		`<d:G m:type="Edm.Guid">c9000000-0000-0000-0000-000000000001</d:G><d:B m:type="Edm.Binary">AAH/</d:B>` +
		"<d:Empty></d:Empty><d:Blanks xml:space=\"preserve\"> x\n</d:Blanks>" +
		`</m:properties></content></entry>`
	feed = head + `<feed` + spaces + inSpace + `><title type="text">Blogs</title><id>http://acct.table.example.net/Blogs</id>` +
		`<updated>2009-04-30T20:44:10Z</updated><link rel="self" title="Blogs" href="Blogs" />`
)

// The documents of section 7.
func TestAnswer(t *testing.T) {
	e := tables.Entity{PK: "Channel_19", RK: "O'H <", Timestamp: stamp, Props: everyType(t)}
	got, err := Codec{}.AppendEntity([]byte("before"), blogs(), odata.Alone, e)
	require.NoError(t, err)
	require.Equal(t, "before"+head+`<entry`+spaces+etag+inSpace+body, string(got))

	got = Codec{}.AppendFeedStart(nil, blogs())
	for i := range 2 {
		got, err = Codec{}.AppendEntity(got, blogs(), odata.InFeed(i), e)
		require.NoError(t, err)
	}
	got = Codec{}.AppendFeedEnd(got, 2)
	require.Equal(t, feed+strings.Repeat(`<entry`+etag+body, 2)+`</feed>`, string(got))
	requireXML(t, got)

	got = Codec{}.AppendFeedEnd(Codec{}.AppendFeedStart(nil, blogs()), 0)
	require.Equal(t, feed+`<author><name /></author></feed>`, string(got))

	_, err = Codec{}.AppendEntity(nil, blogs(), odata.Alone, tables.Entity{Props: []byte{1, 1}})
	require.ErrorIs(t, err, entity.ErrMalformed)
}

// Entries of tables have no m:etag (7).
func TestAnswerTables(t *testing.T) {
	set := blogs()
	set.Table = odata.Tables
	const entry = `><id>http://acct.table.example.net/Tables('Blogs')</id><title type="text"></title>` +
		`<updated>2009-04-30T20:44:10Z</updated><author><name /></author><link rel="edit" title="Tables" href="Tables('Blogs')" />` +
		`<category term="acct.Tables" scheme="http://schemas.microsoft.com/ado/2007/08/dataservices/scheme" />` +
		`<content type="application/xml"><m:properties><d:TableName>Blogs</d:TableName></m:properties></content></entry>`
	require.Equal(t, head+`<entry`+spaces+inSpace+entry, string(Codec{}.AppendTable(nil, set, odata.Alone, "Blogs")))
	require.Equal(t, `<entry`+entry, string(Codec{}.AppendTable(nil, set, odata.Later, "Blogs")))
	require.Equal(t, strings.ReplaceAll(feed, "Blogs", "Tables"), string(Codec{}.AppendFeedStart(nil, set)))
}

// A.52 in Atom: named properties in stored order, null for what the entity has not, and nothing for
// what no property may be called.
func TestAnswerSelect(t *testing.T) {
	e := tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: everyType(t)}
	for text, want := range map[string]string{
		"zz,D, Rating":                      `<d:Rating m:type="Edm.Int32">9</d:Rating><d:D m:type="Edm.Double">1</d:D><d:zz m:null="true" />`,
		"RowKey,no/*<name,a b,PartitionKey": `<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey>`,
		"Timestamp":                         `<d:Timestamp m:type="Edm.DateTime">2009-04-30T20:44:09.5789464Z</d:Timestamp>`,
	} {
		set := blogs()
		var err error
		set.Select, err = odata.ParseSelect(text)
		require.NoError(t, err)
		got, err := Codec{}.AppendEntity(nil, set, odata.Alone, e)
		require.NoError(t, err)
		requireXML(t, got)
		require.Contains(t, string(got), etag)
		_, rest, _ := strings.Cut(string(got), `<m:properties>`)
		require.Equal(t, want+`</m:properties></content></entry>`, rest, text)
	}
	for _, text := range []string{"", " ", "*"} {
		set := blogs()
		set.Select, _ = odata.ParseSelect(text)
		got, err := Codec{}.AppendEntity(nil, set, odata.Alone, e)
		require.NoError(t, err)
		all, err := Codec{}.AppendEntity(nil, blogs(), odata.Alone, e)
		require.NoError(t, err)
		require.Equal(t, string(all), string(got), "%q", text)
	}
}

// Doubles as XML has them (5.1, 5.2).
func TestAppendDouble(t *testing.T) {
	for want, v := range map[string]float64{
		"1": 1, "-0": math.Copysign(0, -1), "100": 100, "10.01": 10.01, "3.14": 3.14, "1E+20": 1e20, "5E-324": 5e-324,
		"NaN": math.NaN(), "INF": math.Inf(1), "-INF": math.Inf(-1),
	} {
		require.Equal(t, want, string(appendDouble(nil, v)))
	}
}

// What XML cannot carry is a reference to it, a carriage return too, which a reader would change.
func TestAppendText(t *testing.T) {
	for text, want := range map[string]string{
		"\x00a\x1f":                    "&#0;a&#31;",
		"a\r\nb\t":                     "a&#13;\nb\t",
		"\ufffe\uffff\ufffd\uff21\xef": "&#65534;&#65535;\ufffd\uff21\xef",
		"é😀\u0085\u2028":               "é😀\u0085\u2028",
		"]]>":                          "]]&gt;",
	} {
		require.Equal(t, want, string(appendText(nil, text)))
		require.Equal(t, want, string(appendText(nil, []byte(text))))
	}
}

// White space at either end of a value is marked (7).
func TestAppendString(t *testing.T) {
	for value, want := range map[string]string{
		"x": "<d:n>x</d:n>", "": "<d:n></d:n>", "a b": "<d:n>a b</d:n>", " x": `<d:n xml:space="preserve"> x</d:n>`,
		"x\n": "<d:n xml:space=\"preserve\">x\n</d:n>", "\r": `<d:n xml:space="preserve">&#13;</d:n>`,
	} {
		require.Equal(t, want, string(appendString(nil, "n", value)))
	}
}

// requireXML requires a document to be well-formed.
func requireXML(t require.TestingT, doc []byte) {
	d := xml.NewDecoder(strings.NewReader(string(doc)))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, "%s", doc)
	}
}
