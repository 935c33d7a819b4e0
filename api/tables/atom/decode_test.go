package atom

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/api/tables/odata"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

// entry is a request body with the properties.
func entry(properties string) string {
	return `<?xml version="1.0" encoding="utf-8" standalone="yes"?>` + "\n" +
		`<entry xmlns:d="` + dataSpace + `" xmlns:m="` + metaSpace + `" xmlns="` + atomSpace + `">` +
		`<title /><updated>2009-04-30T20:44:09.5789464Z</updated><author><name /></author><id />` +
		`<content type="application/xml"><m:properties>` + properties + `</m:properties></content></entry>`
}

// show decodes a body and prints the stored properties as Atom has them.
func show(body string, mode odata.Mode) (string, error) {
	in, err := Codec{}.DecodeEntity([]byte(body), mode)
	if err != nil {
		return "", err
	}
	var out []byte
	r := entity.Read(in.Props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		out = appendProperty(out, p)
	}
	return string(out), r.Err()
}

// What is stored for the values of 5.1, 5.2 and 7.
func TestDecodeValues(t *testing.T) {
	for _, tc := range []struct{ properties, want string }{
		{``, ``},
		{`<d:a>text</d:a>`, `<d:a>text</d:a>`},
		{`<d:a m:type="Edm.String">5</d:a>`, `<d:a>5</d:a>`},
		{"<d:a>  a\r\nb\rc </d:a>", "<d:a xml:space=\"preserve\">  a\nb\nc </d:a>"},
		{`<d:a>&lt;&amp;&#233;&#x1F600;<![CDATA[<x>]]><!-- no text --> end</d:a>`, `<d:a>&lt;&amp;é😀&lt;x&gt; end</d:a>`},
		{`<d:a></d:a><d:b />`, `<d:a></d:a><d:b></d:b>`},
		{`<d:a m:type="Edm.Int32"> -7
</d:a>`, `<d:a m:type="Edm.Int32">-7</d:a>`},
		{`<d:a m:type="Edm.Int64">9007199254740993</d:a>`, `<d:a m:type="Edm.Int64">9007199254740993</d:a>`},
		{
			`<d:a m:type="Edm.Double">1</d:a><d:b m:type="Edm.Double">-INF</d:b><d:c m:type="Edm.Double">Infinity</d:c>`,
			`<d:a m:type="Edm.Double">1</d:a><d:b m:type="Edm.Double">-INF</d:b><d:c m:type="Edm.Double">INF</d:c>`,
		},
		{`<d:a m:type="Edm.Boolean">1</d:a><d:b m:type="Edm.Boolean">FALSE</d:b>`, `<d:a m:type="Edm.Boolean">true</d:a><d:b m:type="Edm.Boolean">false</d:b>`},
		{`<d:a m:type="Edm.DateTime">2020-01-01T03:02:00.1200000+02:00</d:a>`, `<d:a m:type="Edm.DateTime">2020-01-01T01:02:00.12Z</d:a>`},
		{`<d:a m:type="Edm.Guid">C9DA6455-213D-42C9-9A79-3E9149A57833</d:a>`, `<d:a m:type="Edm.Guid">c9da6455-213d-42c9-9a79-3e9149a57833</d:a>`},
		{"<d:a m:type=\"Edm.Binary\">\n AA\r\n\tH/ </d:a><d:b m:type=\"Edm.Binary\" />", `<d:a m:type="Edm.Binary">AAH/</d:a><d:b m:type="Edm.Binary"></d:b>`},
		{`<d:a m:null="true" /><d:b m:null="true" m:type="Edm.Int32">7</d:b><d:c m:null="false">x</d:c>`, `<d:c>x</d:c>`},
		{`<d:Timestamp m:type="Edm.Nonsense">0001<any>shape</any></d:Timestamp><d:Timestamp m:null="true" /><d:a>x</d:a>`, `<d:a>x</d:a>`},
		{`<d:PartitionKey m:null="true" /><d:a>x</d:a>`, `<d:a>x</d:a>`},
		{`<m:other><d:inner>ignored</d:inner></m:other><other>no</other>stray<d:a>x</d:a><d:A>y</d:A>`, `<d:a>x</d:a><d:A>y</d:A>`},
		{`<x:a xmlns:x="` + dataSpace + `" xmlns:y="` + metaSpace + `" y:type="Edm.Int32">7</x:a>`, `<d:a m:type="Edm.Int32">7</d:a>`},
		{`<d:a type="Edm.Int32" d:null="true">7</d:a>`, `<d:a>7</d:a>`},
	} {
		got, err := show(entry(tc.properties), odata.Update)
		require.NoError(t, err, tc.properties)
		require.Equal(t, tc.want, got, tc.properties)
	}
}

// Bodies that clients of 2008 to 2013 send: other prefixes, names as in samples, what is filled in
// or left out (7).
func TestDecodeTolerance(t *testing.T) {
	plain := entry(`<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey><d:a>x</d:a>`)
	for name, body := range map[string]string{
		"plain":             plain,
		"mark":              "\xef\xbb\xbf" + plain,
		"no declaration":    plain[strings.Index(plain, "<entry"):],
		"https":             strings.Replace(plain, atomSpace, atomSpaceHTTPS, 1),
		"prefix for Atom":   `<a:entry xmlns:a="` + atomSpace + `" xmlns:q="` + dataSpace + `" xmlns="` + metaSpace + `"><a:content><properties><q:PartitionKey>p</q:PartitionKey><q:RowKey>r</q:RowKey><q:a>x</q:a></properties></a:content></a:entry>`,
		"nothing else":      strings.Replace(strings.Replace(plain, `<title /><updated>2009-04-30T20:44:09.5789464Z</updated><author><name /></author><id />`, "", 1), ` type="application/xml"`, "", 1),
		"filled, and wrong": strings.Replace(plain, `<id />`, `<id>http://h/T(PartitionKey='q</id><id>twice</id><link rel="edit" href="T" /><category term="x" />text`, 1),
		"unknown":           strings.Replace(plain, `<id />`, `<!-- c --><?p i?><z:e xmlns:z="urn:z" z:k="v"><z:f><m:x/></z:f></z:e>`, 1),
		"outside content":   strings.NewReplacer(`<content type="application/xml">`, "", `</content>`, "").Replace(plain),
		"around":            "\r\n <!-- before -->\n" + plain[strings.Index(plain, "<entry"):] + "\n<!-- behind --> <?p?> ",
	} {
		got, err := show(body, odata.Insert)
		require.NoError(t, err, name)
		require.Equal(t, `<d:a>x</d:a>`, got, name)
	}
	in, err := Codec{}.DecodeEntity([]byte(plain), odata.Update)
	require.NoError(t, err)
	require.Equal(t, odata.Incoming{PK: "p", RK: "r", HasPK: true, HasRK: true, Props: in.Props}, in)
}

// Bodies that are refused, each with its row.
// It holds invariant 7.
func TestDecodeErrors(t *testing.T) {
	in := storageerr.InvalidInput
	names := func(n int, more string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `<d:p%d%s`, i, more)
		}
		return entry(b.String())
	}
	deep := func(n int) string {
		return entry(`<m:o>` + strings.Repeat("<o>", n) + strings.Repeat("</o>", n) + `</m:o>`)
	}
	for name, tc := range map[string]struct {
		body string
		want error
	}{
		"empty":                {"", in},
		"blank":                {" \n", in},
		"text":                 {"text", in},
		"JSON":                 {`{"PartitionKey":"p"}`, in},
		"not an entry":         {strings.ReplaceAll(entry(""), "entry", "feed"), in},
		"no namespace":         {`<entry><content><properties /></content></entry>`, in},
		"no properties":        {strings.ReplaceAll(entry(""), "m:properties", "m:property"), in},
		"of another namespace": {strings.ReplaceAll(entry(""), metaSpace, "urn:other"), in},
		"twice":                {strings.Replace(entry(""), "</content>", "<m:properties /></content>", 1), in},
		"cut short":            {strings.TrimSuffix(entry(""), "</entry>"), in},
		"cut in a tag":         {strings.TrimSuffix(entry(""), ">"), in},
		"another root":         {entry("") + "<entry />", in},
		"text behind":          {entry("") + "x", in},
		"text before":          {"x" + entry(""), in},
		"mismatched":           {entry(`<d:Text>x</d:Title>`), in},
		"entity":               {entry(`<d:a>&nbsp;</d:a>`), in},
		"DTD":                  {`<!DOCTYPE entry [<!ENTITY e "x">]>` + entry(``)[56:], in},
		"DTD inside":           {entry(`<!ENTITY e "x">`), in},
		"control character":    {entry("<d:a>\x01</d:a>"), in},
		"reference to one":     {entry(`<d:a>&#1;</d:a>`), in},
		"half a pair":          {entry(`<d:a>�&#x0d83D;&#xDE00;</d:a>`), in},
		"half a pair, decimal": {entry(`<d:a>&amp;&#0057343;</d:a>`), in},
		"no half of a pair":    {entry(`<d:a>�&#xFFFD;&#65533;&#xD7FF;&#xE000;<![CDATA[�&#xD800;]]></d:a>`), nil},
		"not UTF-8":            {entry("<d:a>\xff</d:a>"), in},
		"another encoding":     {strings.Replace(entry(""), "utf-8", "iso-8859-1", 1), in},
		"attribute twice":      {entry(`<d:a m:type="Edm.Int32" m:type="Edm.Int32">7</d:a>`), in},
		"element in a value":   {entry(`<d:a>x<b/></d:a>`), in},
		"bad type":             {entry(`<d:a m:type="Edm.Decimal">1</d:a>`), in},
		"bad type, null":       {entry(`<d:a m:type="Int32" m:null="true" />`), in},
		"bad Int32":            {entry(`<d:a m:type="Edm.Int32">2147483648</d:a>`), in},
		"empty Int32":          {entry(`<d:a m:type="Edm.Int32" />`), in},
		"bad Base64":           {entry(`<d:a m:type="Edm.Binary">AAA</d:a>`), in},
		"empty DateTime":       {entry(`<d:a m:type="Edm.DateTime"></d:a>`), in},
		"year 1": {
			entry(`<d:X m:type="Edm.DateTime">0001-01-01T00:00:00</d:X>`),
			storageerr.OutOfRangeInput.Saying("The 'X' parameter of value '01/01/0001 00:00:00' is out of range."),
		},
		"key of another type": {entry(`<d:RowKey m:type="Edm.Int32">1</d:RowKey>`), in},
		"name":                {entry(`<d:a-b>x</d:a-b>`), storageerr.PropertyNameInvalid},
		"name of a null":      {entry(`<d:a.b m:null="true" />`), storageerr.PropertyNameInvalid},
		"name too long":       {entry(`<d:` + strings.Repeat("n", 256) + ` />`), storageerr.PropertyNameTooLong},
		"same name":           {entry(`<d:a>x</d:a><d:a m:null="true" />`), storageerr.DuplicateProperties},
		"same key":            {entry(`<d:RowKey /><d:RowKey />`), storageerr.DuplicateProperties},
		"value too large":     {entry(`<d:a>` + strings.Repeat("x", entity.StringUnitsMax+1) + `</d:a>`), storageerr.PropertyValueTooLarge},
		"too many":            {names(entity.PropertiesMax+1, " />"), storageerr.TooManyProperties},
		"most nulls":          {names(propertiesMax, ` m:null="true" />`), nil},
		"too many nulls":      {names(propertiesMax+1, ` m:null="true" />`), storageerr.TooManyProperties},
		"most":                {names(entity.PropertiesMax, " />"), nil},
		"deepest":             {deep(depthMax - 4), nil},
		"too deep":            {deep(depthMax - 3), in},
		"most attributes":     {entry(`<m:o` + attributes(attributesMax) + ` />`), nil},
		"too many attributes": {entry(`<m:o` + attributes(attributesMax+1) + ` />`), in},
		"long tag":            {entry(`<m:o a="` + strings.Repeat("x", tagBytesMax-20) + `" />`), nil},
		"too long a tag":      {entry(`<m:o a="` + strings.Repeat("x", tagBytesMax) + `" />`), in},
		"too long a text":     {entry(`<d:a>` + strings.Repeat("x", textBytesMax+1) + `</d:a>`), storageerr.PropertyValueTooLarge},
		"too long a comment":  {entry(`<!--` + strings.Repeat("x", textBytesMax) + `-->`), in},
		"too many tokens":     {entry(strings.Repeat(`<m:o/>`, tokensMax/2)), in},
	} {
		_, err := Codec{}.DecodeEntity([]byte(tc.body), odata.Update)
		if tc.want == nil {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, tc.want, name)
		}
	}
}

func attributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ` a%d=""`, i)
	}
	return b.String()
}

// Keys of an Insert: A.7, A.10 to A.12.
func TestDecodeKeys(t *testing.T) {
	key := func(pk, rk string) string {
		return entry(`<d:PartitionKey>` + pk + `</d:PartitionKey><d:RowKey m:type="Edm.String">` + rk + `</d:RowKey>`)
	}
	for name, tc := range map[string]struct {
		body string
		want error
	}{
		"empty":  {key("", ""), nil},
		"quotes": {key("O'Hara", "é &amp; 😀"), nil},
		"no row": {entry(`<d:PartitionKey>p</d:PartitionKey>`), storageerr.PropertiesNeedValue},
		"null":   {entry(`<d:PartitionKey>p</d:PartitionKey><d:RowKey m:null="true" />`), storageerr.PropertiesNeedValue},
		"slash":  {key("p", "a/b"), storageerr.OutOfRangeInput.Saying("The 'RowKey' parameter of value 'a/b' is out of range.")},
		"long":   {key(strings.Repeat("x", 513), "r"), storageerr.PropertyValueTooLarge},
	} {
		_, err := Codec{}.DecodeEntity([]byte(tc.body), odata.Insert)
		if tc.want == nil {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, tc.want, name)
		_, err = Codec{}.DecodeEntity([]byte(tc.body), odata.Update)
		require.NoError(t, err, name)
	}
}

func TestDecodeTableName(t *testing.T) {
	for _, tc := range []struct {
		body, name string
		want       error
	}{
		{entry(`<d:TableName>Blogs</d:TableName>`), "Blogs", nil},
		{entry(`<d:other m:type="Edm.None"/><d:TableName m:type="Edm.String">Blogs</d:TableName>`), "Blogs", nil},
		{entry(``), "", storageerr.InvalidInput},
		{``, "", storageerr.InvalidInput},
		{entry(`<d:TableName m:null="true" />`), "", storageerr.InvalidInput},
		{entry(`<d:TableName m:type="Edm.Int32">5</d:TableName>`), "", storageerr.InvalidInput},
		{entry(`<d:TableName>a</d:TableName><d:TableName>b</d:TableName>`), "", storageerr.DuplicateProperties},
		{entry(`<d:TableName>ab</d:TableName>`), "", storageerr.NameLengthOutOfRange},
		{entry(`<d:TableName>tables</d:TableName>`), "", storageerr.InvalidInput},
		{entry(`<d:TableName> Blogs </d:TableName>`), "", storageerr.InvalidResourceName},
	} {
		name, err := Codec{}.DecodeTableName([]byte(tc.body))
		require.ErrorIs(t, err, tc.want, tc.body)
		if tc.want == nil {
			require.Equal(t, tc.name, name)
		}
	}
}

// An entity that was read and is sent back stores the same properties, in order, with the keys:
// all but the characters that XML has not.
func TestRoundTrip(t *testing.T) {
	inXML := func(s string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && !strings.ContainsRune(white, r) || r == 0xfffe || r == 0xffff })
	}
	texts := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune(" \t\r\n<>&\"']é\uffa0\U0001f600")))).Filter(inXML)
	rapid.Check(t, func(t *rapid.T) {
		e := drawn(t, texts)
		alone, err := Codec{}.AppendEntity(nil, blogs(), odata.Alone, e)
		require.NoError(t, err)
		requireXML(t, alone)
		in, err := Codec{}.DecodeEntity(alone, odata.Update)
		require.NoError(t, err, "%s", alone)
		require.Equal(t, e.Props, in.Props, "%s", alone)
		require.Equal(t, [2]string{e.PK, e.RK}, [2]string{in.PK, in.RK})
	})
	name, err := Codec{}.DecodeTableName(Codec{}.AppendTable(nil, blogs(), odata.Alone, "Blogs"))
	require.NoError(t, err)
	require.Equal(t, "Blogs", name)
}

// A body of the largest size that is nothing but markup or text is refused, and takes little more
// memory than it has, whatever it is.
//
// Capability: Clients: Tables of every version since the 2008 preview.
func TestDecodeIsBounded(t *testing.T) {
	for _, unit := range []string{"<a>", "<a/>", "<!---->", "<?p?>", "a", "<a b=''/>", "&amp;", "<![CDATA[]]>", "<", "<d:a/>", "<d:a>x</d:a>", " a=''", strings.Repeat("a", 1<<19) + "<o/>"} {
		for _, frame := range []string{"", "<entry>", entry("<d:a>"), entry(""), entry("<d:a ")} {
			opened := strings.TrimSuffix(frame, "</m:properties></content></entry>")
			body := []byte(opened + strings.Repeat(unit, (4<<20-len(opened))/len(unit)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Codec{}.DecodeEntity(body, odata.Insert)
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(12<<20), "%s in %s", unit, opened)
		}
	}
}

// No body is a panic; what is stored is legal, and what is printed of it reads back the same.
func FuzzDecodeEntity(f *testing.F) {
	f.Add([]byte(entry(`<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey><d:a m:type="Edm.Double">-INF</d:a>`)))
	f.Add([]byte(entry(`<d:a m:null="true" /><d:b><![CDATA[ x ]]></d:b><d:c m:type="Edm.Binary"> AA H/</d:c>`)))
	f.Add([]byte(`<!DOCTYPE e [<!ENTITY x SYSTEM "file:///etc/passwd">]><entry>&x;</entry>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, mode := range []odata.Mode{odata.Insert, odata.Update} {
			in, err := Codec{}.DecodeEntity(body, mode)
			if err != nil {
				_, known := storageerr.Of(err)
				require.True(t, known, "%v", err)
				continue
			}
			if err := entity.Validate("", "", in.Props); err != nil {
				require.ErrorIs(t, err, storageerr.EntityTooLarge)
			}
			again, err := Codec{}.DecodeEntity(printed(t, in), odata.Update)
			require.NoError(t, err)
			require.Equal(t, in, again)
		}
		if name, err := (Codec{}).DecodeTableName(body); err == nil {
			require.NoError(t, entity.ValidateTableName(name))
		}
	})
}

// printed is what was read as a body again, with the keys that it had.
func printed(t *testing.T, in odata.Incoming) []byte {
	var b []byte
	if in.HasPK {
		b = appendString(b, entity.PartitionKey, in.PK)
	}
	if in.HasRK {
		b = appendString(b, entity.RowKey, in.RK)
	}
	r := entity.Read(in.Props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		b = appendProperty(b, p)
	}
	require.NoError(t, r.Err())
	return []byte(entry(string(b)))
}
