package json

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// stamp is 2022-04-13T19:25:37.512524Z.
const stamp geo.Timestamp = 16498779375125240

// show decodes a body and prints the custom properties at nometadata, each with the
// first letters of its type.
func show(body string, mode odata.Mode) (string, error) {
	in, err := NoMetadata.DecodeEntity([]byte(body), mode)
	if err != nil {
		return "", err
	}
	var out []byte
	a := encoder{level: NoMetadata}
	r := entity.Read(in.Props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		out = append(append(out, p.Type.String()[4:]...), ' ')
		out = append(a.appendProperty(out, p), ' ')
	}
	return strings.TrimSpace(string(out)), r.Err()
}

// Input rules of 5.1 and 5.2: what is stored for a body, and how it prints.
func TestDecodeEntity(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{`{}`, ``},
		{" \t\r\n{ } \n", ``},
		{"\xef\xbb\xbf{}", ``},
		{`{"x":5}`, `Int32 "x":5`}, // A.19
		{`{"x":5.0}`, `Double "x":5.0`},
		{`{"x":"5"}`, `String "x":"5"`},
		{`{"x":-2147483648,"y":2147483648}`, `Int32 "x":-2147483648 Double "y":2147483648.0`},
		{`{"x":1e2,"y":-0.0,"z":5e-324}`, `Double "x":100.0 Double "y":-0.0 Double "z":5E-324`},
		{`{"Big@odata.type":"Edm.Int64","Big":"9007199254740993"}`, `Int64 "Big":"9007199254740993"`}, // A.20
		{`{"Big":"9007199254740993","Big@odata.type":"Edm.Int64"}`, `Int64 "Big":"9007199254740993"`},
		{
			`{"Big@odata.type":"Edm.Int64","a":1,"Big":7,"b@odata.type":"Edm.Double","gone@odata.type":"Edm.None","b":2}`,
			`Int32 "a":1 Int64 "Big":"7" Double "b":2.0`,
		},
		{`{"D@odata.type":"Edm.Double","D":1}`, `Double "D":1.0`}, // A.21
		{`{"D@odata.type":"Edm.Double","D":"NaN","E@odata.type":"Edm.Double","E":"-Infinity"}`, `Double "D":"NaN" Double "E":"-Infinity"`},
		{`{"D@odata.type":"Edm.Double","D":"1.5"}`, `Double "D":1.5`},
		{`{"D@odata.type":"Edm.DateTime","D":"2020-01-01T03:02:00.1200000+02:00"}`, `DateTime "D":"2020-01-01T01:02:00.12Z"`}, // A.22
		{`{"D@odata.type":"Edm.DateTime","D":"9999-12-31T23:59:59.99999999"}`, `DateTime "D":"9999-12-31T23:59:59.9999999Z"`},
		{`{"D@odata.type":"Edm.DateTime","D":"1601-01-01T00:00:00Z"}`, `DateTime "D":"1601-01-01T00:00:00Z"`},
		{`{"d":"2020-01-01T00:00:00Z"}`, `String "d":"2020-01-01T00:00:00Z"`}, // A.24
		{`{"g@odata.type":"Edm.Guid","g":"C9DA6455-213D-42C9-9A79-3E9149A57833"}`, `Guid "g":"c9da6455-213d-42c9-9a79-3e9149a57833"`},
		{`{"b@odata.type":"Edm.Binary","b":"AAH/"}`, `Binary "b":"AAH/"`},
		{`{"b@odata.type":"Edm.Binary","b":""}`, `Binary "b":""`},
		{
			`{"t":true,"f":false,"s@odata.type":"Edm.Boolean","s":"True","z@odata.type":"Edm.Boolean","z":"0"}`,
			`Boolean "t":true Boolean "f":false Boolean "s":true Boolean "z":false`,
		},
		{`{"i@odata.type":"Edm.Int32","i":"-7"}`, `Int32 "i":-7`},
		{`{"a":null,"b@odata.type":"Edm.Int64","b":null}`, ``},                             // A.25
		{`{"a":1,"A":2}`, `Int32 "a":1 Int32 "A":2`},                                       // A.16
		{`{"Timestamp":"0001-01-01T00:00:00Z","Timestamp@odata.type":"Edm.Nonsense"}`, ``}, // A.23
		{`{"Timestamp":{"any":["shape",{}]},"a":1}`, `Int32 "a":1`},
		{`{"odata.metadata":"x","odata.type":1,"odata.etag":[[]],"a@odata.navigationLinkUrl":"y","a":1}`, `Int32 "a":1`},
		{
			`{"a":"   abc ","b":"\"\"","c":"''","d":"\u0000\u00e9\ud83d\ude00\/"}`,
			`String "a":"   abc " String "b":"\"\"" String "c":"''" String "d":"\u0000é😀/"`,
		},
		{`{"\u0061":1}`, `Int32 "a":1`},
		{`{"ꀕ":"ꀕ"}`, `String "ꀕ":"ꀕ"`},
		{`{"PartitionKey":"other","RowKey":null,"a":1}`, `Int32 "a":1`}, // A.38
	} {
		got, err := show(tc.body, odata.Update)
		if err != nil || got != tc.want {
			t.Errorf("%s\n got %s, %v\nwant %s", tc.body, got, err, tc.want)
		}
	}
}

// Bodies that are refused, each with its row.
// It holds invariant 7.
func TestDecodeEntityErrors(t *testing.T) {
	in := storageerr.InvalidInput
	for _, tc := range []struct {
		body string
		want storageerr.Row
	}{
		{``, in},
		{`[]`, in},
		{`null`, in},
		{`{`, in},
		{`{}x`, in},
		{`{}{}`, in},
		{`{"a":1,}`, in},
		{`{"a" 1}`, in},
		{`{a:1}`, in},
		{`{"a":01}`, in},
		{`{"a":+1}`, in},
		{`{"a":1.}`, in},
		{`{"a":.5}`, in},
		{`{"a":1e}`, in},
		{`{"a":NaN}`, in},
		{`{"a":tru}`, in},
		{"{\"a\":\"\n\"}", in},
		{`{"a":"\x"}`, in},
		{`{"a":"\u12"}`, in},
		{`{"a":"`, in},
		{`{"a":"\`, in},
		{`{,"a":1}`, in},
		{`{"a":"\ud800"}`, in},
		{`{"a":"\udc00"}`, in},
		{`{"a":"\ud800\u0041"}`, in},
		{"{\"a\":\"\xff\"}", in},
		{"{\"Timestamp\":\"\xff\"}", in},
		{`{"a":{}}`, in},
		{`{"a":[1]}`, in},
		{`{"Timestamp":[1}`, in},
		{`{"Timestamp":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, in},
		{`{"a":1.797693134862316e308}`, in},
		{`{"a":1` + strings.Repeat("0", 400) + `}`, in},
		{`{"a@odata.type":"Edm.Decimal","a":"1"}`, in},
		{`{"a@odata.type":5,"a":"1"}`, in},
		{`{"a@odata.type":"Edm.DateTimeOffset","a":null}`, in},
		{`{"a@odata.type":"Edm.String","a":1}`, in},
		{`{"a@odata.type":"Edm.String","a":1.5}`, in},
		{`{"a@odata.type":"Edm.String","a":true}`, in},
		{`{"a@odata.type":"Edm.Boolean","a":1.5}`, in},
		{`{"a@odata.type":"Edm.Int32","a":2147483648}`, in},
		{`{"a@odata.type":"Edm.Int32","a":1.0}`, in},
		{`{"a@odata.type":"Edm.Int32","a":true}`, in},
		{`{"a@odata.type":"Edm.Int32","a":""}`, in},
		{`{"a@odata.type":"Edm.Int32","a":"+1"}`, in},
		{`{"a@odata.type":"Edm.Int64","a":"9223372036854775808"}`, in},
		{`{"a@odata.type":"Edm.Int64","a":"0x1"}`, in},
		{`{"a@odata.type":"Edm.Double","a":"nan"}`, in},
		{`{"a@odata.type":"Edm.Double","a":"0x1p4"}`, in},
		{`{"a@odata.type":"Edm.Double","a":""}`, in},
		{`{"a@odata.type":"Edm.Boolean","a":1}`, in},
		{`{"a@odata.type":"Edm.Boolean","a":"yes"}`, in},
		{`{"a@odata.type":"Edm.Guid","a":"zz"}`, in},
		{`{"a@odata.type":"Edm.Guid","a":"c9da6455213d42c99a793e9149a57833"}`, in},
		{`{"a@odata.type":"Edm.Binary","a":"AAA"}`, in},
		{`{"a@odata.type":"Edm.Binary","a":"A-_/"}`, in},
		{`{"a@odata.type":"Edm.Binary","a":7}`, in},
		{`{"a@odata.type":"Edm.DateTime","a":""}`, in},
		{`{"a@odata.type":"Edm.DateTime","a":"2019-02-29T00:00:00Z"}`, in},
		{`{"a@odata.type":"Edm.DateTime","a":"2020-01-01T24:00:00Z"}`, in},
		{`{"a@odata.type":"Edm.DateTime","a":"2020-01-01T00:00:00.Z"}`, in},
		{`{"a@odata.type":"Edm.DateTime","a":"2020-01-01 00:00:00"}`, in},
		{`{"a@odata.type":"Edm.DateTime","a":"2020-01-01T00:00:00+2"}`, in},
		{`{"X@odata.type":"Edm.DateTime","X":"0001-01-01T00:00:00Z"}`, // A.23
			storageerr.OutOfRangeInput.Saying("The 'X' parameter of value '01/01/0001 00:00:00' is out of range.")},
		{
			`{"X@odata.type":"Edm.DateTime","X":"1600-12-31T23:59:59Z"}`,
			storageerr.OutOfRangeInput.Saying("The 'X' parameter of value '12/31/1600 23:59:59' is out of range."),
		},
		{
			`{"X@odata.type":"Edm.DateTime","X":"0001-01-01T00:00:00+14:00"}`,
			storageerr.OutOfRangeInput.Saying("The 'X' parameter of value '01/01/0001 00:00:00' is out of range."),
		},
		{`{"PartitionKey":5}`, in},
		{`{"RowKey@odata.type":"Edm.Guid","RowKey":"a"}`, in},
		{`{"a":1,"a":2}`, storageerr.DuplicateProperties},
		{`{"a":null,"\u0061":2}`, storageerr.DuplicateProperties},
		{`{"a@odata.type":"Edm.Int64","a":"1","a@odata.type":"Edm.Int64"}`, storageerr.DuplicateProperties},
		{`{"PartitionKey":"a","PartitionKey":"a"}`, storageerr.DuplicateProperties},
		{`{"a-b":1}`, storageerr.PropertyNameInvalid},
		{`{"":1}`, storageerr.PropertyNameInvalid},
		{`{"a-b":null}`, storageerr.PropertyNameInvalid},
		{`{"` + strings.Repeat("n", 256) + `":1}`, storageerr.PropertyNameTooLong}, // A.15
		{`{"a":"` + strings.Repeat("x", 32769) + `"}`, storageerr.PropertyValueTooLarge},
	} {
		if got, err := show(tc.body, odata.Update); !errors.Is(err, tc.want) {
			t.Errorf("%.90s\n got %s, %v\nwant %v", tc.body, got, err, tc.want)
		}
	}
}

// Keys of an Insert: A.7, A.8, A.10, A.11, A.12.
func TestDecodeEntityKeys(t *testing.T) {
	for _, tc := range []struct {
		body   string
		pk, rk string
		want   error
	}{
		{`{"PartitionKey":"","RowKey":""}`, "", "", nil},
		{`{"RowKey":"O'Hara","RowKey@odata.type":"Edm.String","PartitionKey":"\u00e9"}`, "é", "O'Hara", nil},
		{`{"PartitionKey":"p"}`, "", "", storageerr.PropertiesNeedValue},
		{`{"PartitionKey":"p","RowKey":null}`, "", "", storageerr.PropertiesNeedValue},
		{`{"PartitionKey":"p","RowKey":"a\u0085b"}`, "", "", storageerr.OutOfRangeInput.Saying("The 'RowKey' parameter of value 'a\u0085b' is out of range.")},
		{`{"PartitionKey":"` + strings.Repeat("x", 513) + `","RowKey":""}`, "", "", storageerr.PropertyValueTooLarge},
	} {
		in, err := NoMetadata.DecodeEntity([]byte(tc.body), odata.Insert)
		if in.PK != tc.pk || in.RK != tc.rk || !errors.Is(err, tc.want) {
			t.Errorf("%.60s: %q %q %v", tc.body, in.PK, in.RK, err)
		}
	}
	in, err := NoMetadata.DecodeEntity([]byte(`{"PartitionKey":"a/b"}`), odata.Update)
	if err != nil || in.PK != "a/b" || !in.HasPK || in.HasRK {
		t.Errorf("update: %+v %v", in, err)
	}
}

// A.14 with annotations far from their properties, on both sides of every limit.
func TestDecodeEntityMany(t *testing.T) {
	body := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"PartitionKey":"p","RowKey":"r"`)
		for i := range n {
			b.WriteString(`,"p` + strconv.Itoa(i) + `":"1"`)
		}
		for i := range n {
			b.WriteString(`,"p` + strconv.Itoa(i) + `@odata.type":"Edm.Int64"`)
		}
		return b.String() + `}`
	}
	in, err := NoMetadata.DecodeEntity([]byte(body(252)), odata.Insert)
	if err != nil {
		t.Fatal(err)
	}
	if p, found, _ := entity.Find(in.Props, "p251"); !found || p.Int64() != 1 {
		t.Errorf("p251 is %v", p)
	}
	for _, n := range []int{253, 600} {
		if _, err := NoMetadata.DecodeEntity([]byte(body(n)), odata.Insert); !errors.Is(err, storageerr.TooManyProperties) {
			t.Errorf("%d properties: %v", n, err)
		}
	}
	twice := strings.Replace(body(30), `"p17":`, `"p3":`, 1)
	if _, err := NoMetadata.DecodeEntity([]byte(twice), odata.Insert); !errors.Is(err, storageerr.DuplicateProperties) {
		t.Errorf("duplicate among many: %v", err)
	}
}

// A body has at most membersMax members, and a value that is skipped at most nestedMax
// levels.
func TestDecodeEntityIsBounded(t *testing.T) {
	members := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			b.WriteString(`,"n` + strconv.Itoa(i) + `":null`)
		}
		return []byte("{" + b.String()[1:] + "}")
	}
	nested := func(n int) []byte {
		return []byte(`{"Timestamp":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}")
	}
	for name, tc := range map[string]struct {
		body []byte
		want error
	}{
		"most members": {members(membersMax), nil},
		"too many":     {members(membersMax + 1), storageerr.TooManyProperties},
		"deepest":      {nested(nestedMax), nil},
		"too deep":     {nested(nestedMax + 1), storageerr.InvalidInput},
	} {
		if _, err := NoMetadata.DecodeEntity(tc.body, odata.Update); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeTableName(t *testing.T) {
	for _, tc := range []struct {
		body, name string
		want       error
	}{
		{`{"TableName":"Blogs"}`, "Blogs", nil},
		{`{"odata.metadata":"x","TableName":"\u0042logs","other":{}}`, "Blogs", nil},
		{`{}`, "", storageerr.InvalidInput},
		{``, "", storageerr.InvalidInput},
		{`{"TableName":null}`, "", storageerr.InvalidInput},
		{`{"TableName":5}`, "", storageerr.InvalidInput},
		{`{"TableName":"ab"}`, "ab", storageerr.NameLengthOutOfRange},
		{`{"TableName":"tables"}`, "tables", storageerr.InvalidInput},
	} {
		name, err := NoMetadata.DecodeTableName([]byte(tc.body))
		if !errors.Is(err, tc.want) || err == nil && name != tc.name {
			t.Errorf("%s: %q %v", tc.body, name, err)
		}
	}
}

// everyType has one property of every type, and the odd values of Double.
const everyType = `{"PartitionKey":"p'","RowKey":"r \"q\"","Rating":9,"Big@odata.type":"Edm.Int64","Big":"9007199254740993",` +
	`"Text":"a\tb","D":1.0,"N@odata.type":"Edm.Double","N":"NaN","T":true,"W@odata.type":"Edm.DateTime","W":"2020-01-01T01:02:00Z",` +
	`"G@odata.type":"Edm.Guid","G":"c9da6455-213d-42c9-9a79-3e9149a57833","B@odata.type":"Edm.Binary","B":"AAH/"}`

// The documents of 6.2 at each level.
func TestAnswer(t *testing.T) {
	in, err := NoMetadata.DecodeEntity([]byte(everyType), odata.Insert)
	if err != nil {
		t.Fatal(err)
	}
	const (
		etag  = `"odata.etag":"W/\"datetime'2022-04-13T19%3A25%3A37.512524Z'\"",`
		keys  = `"PartitionKey":"p'","RowKey":"r \"q\"",`
		time  = `"Timestamp":"2022-04-13T19:25:37.512524Z",`
		path  = `Blogs(PartitionKey='p''',RowKey='r%20%22q%22')`
		typed = `"Rating":9,"Big@odata.type":"Edm.Int64","Big":"9007199254740993","Text":"a\tb","D":1.0,"N@odata.type":"Edm.Double","N":"NaN",` +
			`"T":true,"W@odata.type":"Edm.DateTime","W":"2020-01-01T01:02:00Z",` +
			`"G@odata.type":"Edm.Guid","G":"c9da6455-213d-42c9-9a79-3e9149a57833","B@odata.type":"Edm.Binary","B":"AAH/"}`
		bare = `"Rating":9,"Big":"9007199254740993","Text":"a\tb","D":1.0,"N":"NaN","T":true,"W":"2020-01-01T01:02:00Z",` +
			`"G":"c9da6455-213d-42c9-9a79-3e9149a57833","B":"AAH/"}`
		full = `"odata.type":"acct.Blogs","odata.id":"http://h/acct/` + path + `",` + etag + `"odata.editLink":"` + path + `",` +
			keys + `"Timestamp@odata.type":"Edm.DateTime",` + time + typed
		element = `{"odata.metadata":"http://h/acct/$metadata#Blogs/@Element",`
		feed    = `{"odata.metadata":"http://h/acct/$metadata#Blogs","value":[`
	)
	for level, want := range map[Level][2]string{
		NoMetadata:      {`{` + keys + time + bare, `{"value":[{` + keys + time + bare + `,{` + keys + time + bare + `]}`},
		MinimalMetadata: {element + etag + keys + time + typed, feed + `{` + etag + keys + time + typed + `,{` + etag + keys + time + typed + `]}`},
		FullMetadata:    {element + full, feed + `{` + full + `,{` + full + `]}`},
	} {
		set := &odata.Set{Base: "http://h/acct/", Account: "acct", Table: "Blogs"}
		got, err := level.AppendEntity(nil, set, odata.Alone, tables.Entity{PK: in.PK, RK: in.RK, Timestamp: stamp, Props: in.Props})
		if err != nil || string(got) != want[0] || !json.Valid(got) {
			t.Errorf("%s entity, %v:\n got %s\nwant %s", level, err, got, want[0])
		}
		got = level.AppendFeedStart(nil, set)
		for i := range 2 {
			if got, err = level.AppendEntity(got, set, odata.InFeed(i), tables.Entity{PK: in.PK, RK: in.RK, Timestamp: stamp, Props: in.Props}); err != nil {
				t.Fatal(err)
			}
		}
		if got = level.AppendFeedEnd(got, 2); string(got) != want[1] || !json.Valid(got) {
			t.Errorf("%s feed:\n got %s\nwant %s", level, got, want[1])
		}
	}
	if _, err := MinimalMetadata.AppendEntity(nil, &odata.Set{}, odata.Alone, tables.Entity{Props: []byte{1, 1}}); !errors.Is(err, entity.ErrMalformed) {
		t.Errorf("malformed list: %v", err)
	}
}

func TestAnswerTables(t *testing.T) {
	const full = `"odata.type":"acct.Tables","odata.id":"http://h/Tables('T')","odata.editLink":"Tables('T')",`
	for level, want := range map[Level][2]string{
		NoMetadata: {`{"TableName":"T"}`, `{"value":[{"TableName":"T"},{"TableName":"T"}]}`},
		MinimalMetadata: {
			`{"odata.metadata":"http://h/$metadata#Tables/@Element","TableName":"T"}`,
			`{"odata.metadata":"http://h/$metadata#Tables","value":[{"TableName":"T"},{"TableName":"T"}]}`,
		},
		FullMetadata: {
			`{"odata.metadata":"http://h/$metadata#Tables/@Element",` + full + `"TableName":"T"}`,
			`{"odata.metadata":"http://h/$metadata#Tables","value":[{` + full + `"TableName":"T"},{` + full + `"TableName":"T"}]}`,
		},
	} {
		set := &odata.Set{Base: "http://h/", Account: "acct", Table: odata.Tables}
		if got := level.AppendTable(nil, set, odata.Alone, "T"); string(got) != want[0] {
			t.Errorf("%s: %s", level, got)
		}
		list := level.AppendFeedEnd(level.AppendTable(level.AppendTable(level.AppendFeedStart(nil, set), set, odata.First, "T"), set, odata.Later, "T"), 2)
		if string(list) != want[1] {
			t.Errorf("%s: %s", level, list)
		}
		if empty := level.AppendFeedEnd(level.AppendFeedStart(nil, set), 0); !json.Valid(empty) {
			t.Errorf("empty list: %s", empty)
		}
	}
}

// A.52 and the rules of 11.4.
func TestAnswerSelect(t *testing.T) {
	in, err := NoMetadata.DecodeEntity([]byte(`{"PartitionKey":"p","RowKey":"r","a":1,"b":2,"L@odata.type":"Edm.Int64","L":"3"}`), odata.Insert)
	if err != nil {
		t.Fatal(err)
	}
	const etag = `"odata.etag":"W/\"datetime'2022-04-13T19%3A25%3A37.512524Z'\"",`
	const all = `"PartitionKey":"p","RowKey":"r","Timestamp":"2022-04-13T19:25:37.512524Z","a":1,"b":2,"L@odata.type":"Edm.Int64","L":"3"}`
	many := "b," + strings.Repeat("x,", 100) + "n0,n1,n2,n3,n4,n5,n6,n7,n8,L"
	for _, tc := range []struct{ text, metadata, row string }{
		{"a,zz", "a,zz", etag + `"a":1,"zz":null}`},
		{"zz, L ,a,a", "zz,%20L%20,a,a", etag + `"a":1,"L@odata.type":"Edm.Int64","L":"3","zz":null}`},
		{"RowKey,Timestamp,b", "RowKey,Timestamp,b", etag + `"RowKey":"r","Timestamp":"2022-04-13T19:25:37.512524Z","b":2}`},
		{"PartitionKey", "PartitionKey", etag + `"PartitionKey":"p"}`},
		{"", "", etag + all},
		{" ", "%20", etag + all},
		{"*", "*", etag + all},
		{`q"`, `q\"`, etag + `"q\"":null}`},
		{many, many, etag + `"b":2,"L@odata.type":"Edm.Int64","L":"3","x":null,"n0":null,"n1":null,"n2":null,"n3":null,"n4":null,"n5":null,"n6":null,"n7":null,"n8":null}`},
	} {
		s, err := odata.ParseSelect(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		set := &odata.Set{Base: "http://h/", Account: "acct", Table: "T", Select: s}
		got, err := MinimalMetadata.AppendEntity(MinimalMetadata.AppendFeedStart(nil, set), set, odata.First, tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: in.Props})
		want := `{"odata.metadata":"http://h/$metadata#T&$select=` + tc.metadata + `","value":[{` + tc.row
		if err != nil || string(got) != want {
			t.Errorf("%q: %v\n got %s\nwant %s", tc.text, err, got, want)
		}
	}
}

// What a read gives is stored again unchanged, at the levels that carry types.
func TestReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := entity.Build(nil)
		err := errors.Join(
			b.AddString("s", rapid.String().Draw(t, "s")), b.AddInt32("i", rapid.Int32().Draw(t, "i")), b.AddInt64("l", rapid.Int64().Draw(t, "l")),
			b.AddDouble("d", rapid.SampledFrom([]float64{1, -0.5, math.NaN(), math.Inf(1), math.Inf(-1), 1e300}).Draw(t, "d")),
			b.AddBoolean("b", rapid.Bool().Draw(t, "b")), b.AddDateTime("w", rapid.Int64Range(entity.TicksMin, entity.TicksMax).Draw(t, "w")),
			b.AddGUID("g", [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "g"))), b.AddBinary("x", rapid.SliceOf(rapid.Byte()).Draw(t, "x")))
		if err != nil {
			t.Fatal(err)
		}
		key := rapid.StringMatching(`[a-z'"+ é😀]{0,5}`).Draw(t, "key")
		for _, level := range []Level{MinimalMetadata, FullMetadata} {
			set := &odata.Set{Base: "http://h/", Account: "acct", Table: "T"}
			text, err := level.AppendEntity(nil, set, odata.Alone, tables.Entity{PK: key, RK: "r", Timestamp: stamp, Props: b.Bytes()})
			if err != nil || !json.Valid(text) {
				t.Fatalf("%s %v", text, err)
			}
			in, err := NoMetadata.DecodeEntity(text, odata.Insert)
			if err != nil || in.PK != key || !bytes.Equal(in.Props, b.Bytes()) {
				t.Fatalf("%s reads %x, %v; want %x", text, in.Props, err, b.Bytes())
			}
		}
	})
}

// Any body gives an entity or a row; accepted bodies are JSON, print and read back.
func FuzzDecodeEntity(f *testing.F) {
	f.Add([]byte(everyType))
	f.Add([]byte(`{"a":"\ud83d\ude00","a@odata.type":"Edm.String","Timestamp":[{"x":1}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := NoMetadata.DecodeEntity(body, odata.Insert)
		if err != nil {
			if _, ok := storageerr.Of(err); !ok {
				t.Fatalf("not a row: %v", err)
			}
			return
		}
		if !json.Valid(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))) {
			t.Fatalf("accepted what is not JSON: %q", body)
		}
		if err := entity.Validate(in.PK, in.RK, in.Props); err != nil && !errors.Is(err, storageerr.EntityTooLarge) {
			t.Fatal(err)
		}
		set := &odata.Set{Base: "http://h/", Table: "T"}
		text, err := FullMetadata.AppendEntity(nil, set, odata.Alone, tables.Entity{PK: in.PK, RK: in.RK, Timestamp: stamp, Props: in.Props})
		if err != nil || !json.Valid(text) {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := NoMetadata.DecodeEntity(text, odata.Insert)
		if err != nil || again.PK != in.PK || again.RK != in.RK || !bytes.Equal(again.Props, in.Props) {
			t.Fatalf("%s reads back %x, %v", text, again.Props, err)
		}
	})
}

// oneKiB is an entity of 1 KiB of text over ten properties.
func oneKiB() []byte {
	var b strings.Builder
	b.WriteString(`{"PartitionKey":"partition-00017","RowKey":"row-000000012345","Count":42,"Ratio":0.75,"Active":true,` +
		`"Big@odata.type":"Edm.Int64","Big":"9007199254740993","When@odata.type":"Edm.DateTime","When":"2022-04-13T19:25:37.512524Z",` +
		`"Id@odata.type":"Edm.Guid","Id":"c9da6455-213d-42c9-9a79-3e9149a57833"`)
	for i := range 4 {
		b.WriteString(`,"Text` + strconv.Itoa(i) + `":"` + strings.Repeat("lorem ipsum ", 14) + `"`)
	}
	return []byte(b.String() + `}`)
}

func BenchmarkDecodeEntity(b *testing.B) {
	body := oneKiB()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NoMetadata.DecodeEntity(body, odata.Insert); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendEntity(b *testing.B) {
	in, err := NoMetadata.DecodeEntity(oneKiB(), odata.Insert)
	if err != nil {
		b.Fatal(err)
	}
	set := &odata.Set{Base: "http://127.0.0.1:10002/devstoreaccount1/", Account: "devstoreaccount1", Table: "Blogs"}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = MinimalMetadata.AppendEntity(dst[:0], set, odata.Alone, tables.Entity{PK: in.PK, RK: in.RK, Timestamp: stamp, Props: in.Props}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(dst)))
}
