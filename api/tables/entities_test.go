package tables

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bin is n bytes as a Binary property.
func bin(name string, n int) string {
	return fmt.Sprintf(`"%[1]s@odata.type":"Edm.Binary","%[1]s":"%s"`, name, base64.StdEncoding.EncodeToString(make([]byte, n)))
}

// ints is n properties from the i-th on.
func ints(i, n int) string {
	var b strings.Builder
	for k := i; k < i+n; k++ {
		fmt.Fprintf(&b, `,"n%d":1`, k)
	}
	return b.String()
}

func bins(n, size int) string {
	var all []string
	for i := range n {
		all = append(all, bin(fmt.Sprintf("b%d", i), size))
	}
	return "," + strings.Join(all, ",")
}

// restOfEntity is what the Binary called rest may hold in an entity of 1 MiB with keys of
// one character and 15 Binaries of 64 KiB, by the formula of 4.6: ten of the names have
// two characters, five three.
const restOfEntity = 1<<20 - (4 + 2*2) - 10*(8+2*2+65536+4) - 5*(8+2*3+65536+4) - (8 + 2*4 + 4)

const (
	tooLarge64 = "400 PropertyValueTooLarge The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."
	tooMany    = "400 TooManyProperties The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties."
	badInput   = "400 InvalidInput One of the request inputs is not valid."
	needValue  = "400 PropertiesNeedValue The values are not specified for all properties in the entity."
)

// bareRefusal is the answer to what is no HTTP request: it has no storage body (8.1).
const bareRefusal = "400 Bad Request"

// outcome is status, code and message of a refusal, and the status of a success.
func (r *rig) outcome(a received) string {
	r.t.Helper()
	if a.status < 300 {
		return fmt.Sprint(a.status)
	}
	if a.body == bareRefusal {
		return a.body
	}
	code, message := failureOf(r.t, a.body)
	return fmt.Sprint(a.status, " ", code, " ", message)
}

// Every limit of the data model (protocol/table.md 4 and 5.2, A.10 to A.23) at the limit and
// beyond it: beyond it is the protocol's error, the same by Insert, by upsert and in a
// batch, and nothing is stored.
// It holds invariant 7.
func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, tc := range map[string]struct {
		// props follow the keys in the body.
		props, want string
	}{
		"252 properties":        {ints(0, 252), ""},
		"253 properties":        {ints(0, 253), tooMany},
		"nulls do not count":    {ints(0, 252) + `,"z":null`, ""},
		"name of 255":           {`,"` + strings.Repeat("n", 255) + `":1`, ""},
		"name of 256":           {`,"` + strings.Repeat("n", 256) + `":1`, "400 PropertyNameTooLong The property name exceeds the maximum allowed length (255)."},
		"name with dash":        {`,"a-b":1`, "400 PropertyNameInvalid The property name is invalid."},
		"name with blank":       {`,"a b":1`, "400 PropertyNameInvalid The property name is invalid."},
		"name with dot":         {`,"a.b":1`, "400 PropertyNameInvalid The property name is invalid."},
		"name with digit first": {`,"1a":1`, "400 PropertyNameInvalid The property name is invalid."},
		"empty name":            {`,"":1`, "400 PropertyNameInvalid The property name is invalid."},
		"name of null":          {`,"a-b":null`, "400 PropertyNameInvalid The property name is invalid."},
		"letters of the world":  {`,"_ꀕé1":1`, ""},
		"names differ by case":  {`,"a":1,"A":2`, ""},
		"name twice":            {`,"a":1,"a":2`, "400 DuplicatePropertiesSpecified A property is specified more than one time."},
		"string of 32768":       {`,"s":"` + strings.Repeat("é", 32768) + `"`, ""},
		"string of 32769":       {`,"s":"` + strings.Repeat("x", 32769) + `"`, tooLarge64},
		"string of surrogates":  {`,"s":"` + strings.Repeat("😀", 16385) + `"`, tooLarge64},
		"binary of 65536":       {"," + bin("b", 65536), ""},
		"binary of 65537":       {"," + bin("b", 65537), tooLarge64},
		"entity of 1 MiB":       {bins(15, 65536) + "," + bin("rest", restOfEntity), ""},
		"entity of 1 MiB + 1":   {bins(15, 65536) + "," + bin("rest", restOfEntity+1), "400 EntityTooLarge The entity is larger than the maximum allowed size (1MB)."},
		"16 binaries":           {bins(16, 65536), "400 EntityTooLarge The entity is larger than the maximum allowed size (1MB)."},
		"DateTime of 1601":      {`,"d@odata.type":"Edm.DateTime","d":"1601-01-01T00:00:00Z"`, ""},
		"DateTime of 9999":      {`,"d@odata.type":"Edm.DateTime","d":"9999-12-31T23:59:59.9999999Z"`, ""},
		"DateTime too early":    {`,"d@odata.type":"Edm.DateTime","d":"0001-01-01T00:00:00Z"`, "400 OutOfRangeInput The 'd' parameter of value '01/01/0001 00:00:00' is out of range."},
		"DateTime is text":      {`,"d@odata.type":"Edm.DateTime","d":"yesterday"`, badInput},
		"DateTime is empty":     {`,"d@odata.type":"Edm.DateTime","d":""`, badInput},
		"any Timestamp":         {`,"Timestamp@odata.type":"Edm.DateTime","Timestamp":"0001-01-01T00:00:00"`, ""},
		"Timestamp of a number": {`,"Timestamp":5`, ""},
		"Int32 at most":         {`,"i@odata.type":"Edm.Int32","i":2147483647`, ""},
		"Int32 above":           {`,"i@odata.type":"Edm.Int32","i":2147483648`, badInput},
		"Int32 with fraction":   {`,"i@odata.type":"Edm.Int32","i":1.5`, badInput},
		"Int64 at least":        {`,"i@odata.type":"Edm.Int64","i":"-9223372036854775808"`, ""},
		"Int64 below":           {`,"i@odata.type":"Edm.Int64","i":"-9223372036854775809"`, badInput},
		"Int64 is text":         {`,"i@odata.type":"Edm.Int64","i":"one"`, badInput},
		"Double too great":      {`,"f":1.797693134862316e308`, badInput},
		"Double denormal":       {`,"f":5e-324`, ""},
		"Boolean of two":        {`,"b@odata.type":"Edm.Boolean","b":"2"`, badInput},
		"Guid too short":        {`,"g@odata.type":"Edm.Guid","g":"c9da6455"`, badInput},
		"Binary not Base64":     {`,"b@odata.type":"Edm.Binary","b":"AAH"`, badInput},
		"unknown type":          {`,"x@odata.type":"Edm.Decimal","x":"1"`, badInput},
		"collection":            {`,"x@odata.type":"Collection(Edm.String)","x":[]`, badInput},
		"type is no string":     {`,"x@odata.type":5,"x":"1"`, badInput},
		"object":                {`,"x":{}`, badInput},
		"array":                 {`,"x":[1]`, badInput},
		"lone surrogate":        {`,"x":"\ud800"`, badInput},
		"not JSON":              {`,"x":01`, badInput},
		"more than JSON":        {`}{`, badInput},
		"no end":                {`,"x":1,`, badInput},
		"too deep":              {`,"odata.x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100), badInput},
		"metadata":              {`,"odata.metadata":"m","odata.etag":"e","odata.id":"i","odata.type":"t","odata.editLink":"l"`, ""},
		"U+0000":                {`,"x":"a\u0000b"`, ""},
		"raw control character": {",\"x\":\"a\x01b\"", badInput},
		"invalid UTF-8":         {",\"x\":\"a\xffb\"", badInput},
		"name of bad UTF-8":     {",\"a\xff\":1", badInput},
		"bad escape":            {`,"x":"\q"`, badInput},
		"open string":           {`,"x":"a`, badInput},
		"no colon":              {`,"x" 1`, badInput},
		"no value":              {`,"x":`, badInput},
		"single quotes":         {`,'x':1`, badInput},
		"comment":               {`,"x":1/**/`, badInput},
		"bare word":             {`,"x":tru`, badInput},
		"bare NaN":              {`,"x":NaN`, badInput},
		"hexadecimal":           {`,"x":0x10`, badInput},
		"plus sign":             {`,"x":+1`, badInput},
		"no digit":              {`,"x":-`, badInput},
		"no exponent":           {`,"x":1e`, badInput},
		"key twice":             {`,"RowKey":"s"`, "400 DuplicatePropertiesSpecified A property is specified more than one time."},
		"type twice":            {`,"x@odata.type":"Edm.Int32","x@odata.type":"Edm.Int64","x":"1"`, "400 DuplicatePropertiesSpecified A property is specified more than one time."},
		"1025 members":          {strings.Repeat(`,"odata.x":1`, 1025), tooMany},
		"array too deep":        {`,"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40), badInput},
		"Int32 of Boolean":      {`,"x@odata.type":"Edm.Int32","x":true`, badInput},
		"Int32 of text":         {`,"x@odata.type":"Edm.Int32","x":"1 "`, badInput},
		"Int64 of fraction":     {`,"x@odata.type":"Edm.Int64","x":1.5`, badInput},
		"Double of word":        {`,"x@odata.type":"Edm.Double","x":"infinite"`, badInput},
		"Double of hexadecimal": {`,"x@odata.type":"Edm.Double","x":"0x1p4"`, badInput},
		"Double beyond":         {`,"x@odata.type":"Edm.Double","x":"-1e400"`, badInput},
		"Double below":          {`,"x@odata.type":"Edm.Double","x":"1e-400"`, badInput},
		"number below Double":   {`,"x":-0.1e-330`, badInput},
		"Double of zeros":       {`,"x":-0.00e-400`, ""},
		"Double greatest":       {`,"x":-1.7976931348623157e308`, ""},
		"integer beyond Double": {`,"x":1` + strings.Repeat("0", 400), badInput},
		"Boolean of number":     {`,"x@odata.type":"Edm.Boolean","x":1`, badInput},
		"String of number":      {`,"x@odata.type":"Edm.String","x":1`, badInput},
		"DateTime of number":    {`,"x@odata.type":"Edm.DateTime","x":1`, badInput},
		"DateTime of 29.2.":     {`,"x@odata.type":"Edm.DateTime","x":"2021-02-29T00:00:00Z"`, badInput},
		"DateTime of 24 h":      {`,"x@odata.type":"Edm.DateTime","x":"2021-02-01T24:00:00Z"`, badInput},
		"DateTime of 10000":     {`,"x@odata.type":"Edm.DateTime","x":"9999-12-31T23:59:59-01:00"`, "400 OutOfRangeInput The 'x' parameter of value '12/31/9999 23:59:59' is out of range."},
		"Guid of number":        {`,"x@odata.type":"Edm.Guid","x":1`, badInput},
		"Guid in braces":        {`,"x@odata.type":"Edm.Guid","x":"{c9da6455-213d-42c9-9a79-3e9149a57833}"`, badInput},
		"Binary of number":      {`,"x@odata.type":"Edm.Binary","x":1`, badInput},
		"Binary unpadded":       {`,"x@odata.type":"Edm.Binary","x":"AA"`, badInput},
		"type in lower case":    {`,"x@odata.type":"edm.int32","x":1`, badInput},
	} {
		body := `{"PartitionKey":"p","RowKey":"r"` + tc.props + "}"
		for how, a := range map[string]func() string{
			"insert": func() string {
				return r.outcome(r.do(http.MethodPost, "/acct/tbl", body, "Prefer", "return-no-content"))
			},
			"upsert": func() string { return r.outcome(r.do(http.MethodPut, "/acct/"+key("p", "r"), body)) },
			"batch": func() string {
				return strings.Replace(r.parts(r.batch(set(op("MERGE", key("p", "r"), body)) + end))[0], " 0:", " ", 1)
			},
		} {
			before := r.state()
			got := a()
			if tc.want == "" {
				require.Equal(t, "204", got, "%s by %s", name, how)
				require.Equal(t, http.StatusNoContent, r.do(http.MethodDelete, "/acct/"+key("p", "r"), "", "If-Match", "*").status)
				continue
			}
			require.Equal(t, tc.want, got, "%s by %s", name, how)
			require.Equal(t, before, r.state(), "%s by %s", name, how)
			require.Equal(t, http.StatusNotFound, r.do(http.MethodGet, "/acct/"+key("p", "r"), "").status, "%s by %s", name, how)
		}
	}
}

// The result of a Merge is within the limits of an entity (4.3, A.14), and leaves what is
// stored when it would not be.
func TestMergeLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	body := `{"PartitionKey":"p","RowKey":"many"` + ints(0, 252) + "}"
	require.Equal(t, "201", r.outcome(r.do(http.MethodPost, "/acct/tbl", body)))
	require.Equal(t, tooMany, r.outcome(r.do("MERGE", "/acct/"+key("p", "many"), `{"new":1}`)))
	require.Equal(t, "204", r.outcome(r.do("MERGE", "/acct/"+key("p", "many"), `{"n5":2}`)))
	body = `{"PartitionKey":"p","RowKey":"large"` + bins(15, 65536) + "}"
	require.Equal(t, "201", r.outcome(r.do(http.MethodPost, "/acct/tbl", body)))
	before := r.do(http.MethodGet, "/acct/"+key("p", "large"), "").header.Get("ETag")
	got := r.outcome(r.do("MERGE", "/acct/"+key("p", "large"), "{"+bin("more", 65536)+"}"))
	require.Equal(t, "400 EntityTooLarge The entity is larger than the maximum allowed size (1MB).", got)
	require.Equal(t, before, r.do(http.MethodGet, "/acct/"+key("p", "large"), "").header.Get("ETag"))
}

// What is no condition is ignored, alone and in a batch: without an If-Match, PUT and MERGE are upserts and a deletion is
// refused, and one in a batch is of any version (docs/protocol/table.md 9.7, 9.8, 10.2).
func TestNoConditions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	there := key("p", "there")
	const empty = " " // As it is sent: the rig leaves out a header without a value.
	const missing = "400 MissingRequiredHeader A required HTTP header was not specified."
	for _, value := range []string{empty, "null", "undefined"} {
		none := []string{"If-Match", value, "If-None-Match", value, "If-Modified-Since", value, "If-Unmodified-Since", value}
		if value == "undefined" { // A tag without its quotes, but no date.
			for _, method := range []string{http.MethodPut, "MERGE", http.MethodDelete} {
				got := r.outcome(r.do(method, "/acct/"+there, `{"x":2}`, none[:2]...))
				require.Contains(t, got, "400 InvalidInput The etag value 'undefined' specified", method)
			}
			none = none[4:]
		}
		lines := make([]string, 0, len(none)/2)
		for i := 0; i < len(none); i += 2 {
			lines = append(lines, none[i]+": "+none[i+1])
		}
		for _, method := range []string{http.MethodPut, "MERGE", "PATCH"} {
			for _, at := range []string{there, key("p", "new"+method)} {
				require.Equal(t, "204", r.outcome(r.do(method, "/acct/"+at, `{"x":2}`, none...)), "%s %q", method, value)
				require.Equal(t, []string{"204"}, r.parts(r.batch(set(op(method, at, `{"x":2}`, lines...))+end)), "%s %q", method, value)
				require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/acct/"+at, "", none...).status)
				require.Equal(t, missing, r.outcome(r.do(http.MethodDelete, "/acct/"+at, "", none...)), "%q", value)
				require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/acct/"+at, "").status, "nothing was deleted")
				require.Equal(t, []string{"204"}, r.parts(r.batch(set(op(http.MethodDelete, at, "", lines...))+end)), "%q", value)
			}
			old := r.do(method, "/acct/"+there, `{"x":2}`, append(none, "x-ms-version", "2009-09-19")...)
			require.Equal(t, missing, r.outcome(old), "before upserts")
		}
		require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/acct/tbl()", "", none...).status)
		require.Equal(t, "201", r.outcome(r.do(http.MethodPost, "/acct/tbl", `{"PartitionKey":"p","RowKey":"there"}`, none...)))
		// Beside a condition they change nothing.
		tag := r.do(http.MethodGet, "/acct/"+there, "").header.Get("ETag")
		require.Equal(t, "204", r.outcome(r.do(http.MethodPut, "/acct/"+there, `{"x":2}`, append(none, "If-Match", tag)...)))
		require.Equal(t, "412", r.outcome(r.do(http.MethodPut, "/acct/"+there, `{"x":2}`, append(none, "If-Match", tag)...))[:3])
		require.Equal(t, "204", r.outcome(r.do(http.MethodDelete, "/acct/"+there, "", append(none, "If-Match", "*")...)))
	}
}

// Keys at their limits and beyond, in bodies and in URLs (4.4, A.7 to A.13).
func TestKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, k := range []string{"", "O'Hara", `a b+c%&=,()"é😀`, strings.Repeat("k", 512), strings.Repeat("😀", 256), " ", "'"} {
		a := r.do(http.MethodPost, "/acct/tbl", fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q}`, k, k))
		require.Equal(t, "201", r.outcome(a), k)
		at := strings.TrimPrefix(a.header.Get("Location"), r.url)
		got := r.do(http.MethodGet, at, "")
		require.Equal(t, http.StatusOK, got.status, at)
		require.Equal(t, a.body, got.body)
		require.Equal(t, a.header.Get("ETag"), got.header.Get("ETag"))
	}
	for _, k := range []string{"a/b", `a\b`, "a#b", "a?b", "\x01", "\x7f", "\u0085"} {
		escaped := strings.ReplaceAll(k, `\`, `\\`)
		escaped = strings.ReplaceAll(escaped, "\x01", `\u0001`)
		for _, name := range []string{"PartitionKey", "RowKey"} {
			other := map[string]string{"PartitionKey": "RowKey", "RowKey": "PartitionKey"}[name]
			a := r.do(http.MethodPost, "/acct/tbl", fmt.Sprintf(`{"%s":"%s","%s":"x"}`, name, escaped, other))
			require.Equal(t, "400 OutOfRangeInput The '"+name+"' parameter of value '"+k+"' is out of range.", r.outcome(a))
		}
		want := "400 OutOfRangeInput One of the request inputs is out of range."
		if strings.ContainsAny(k, `/\`) {
			want = "400 InvalidInput Bad Request - Error in query syntax."
		}
		a := r.do(http.MethodPut, "/acct/tbl(PartitionKey='x',RowKey='"+url.PathEscape(k)+"')", "{}")
		require.Equal(t, want, r.outcome(a), "%q", k)
	}
	for body, want := range map[string]string{
		`{"PartitionKey":"x"}`:                 needValue,
		`{"RowKey":"x"}`:                       needValue,
		`{"PartitionKey":"x","RowKey":null}`:   needValue,
		`{}`:                                   needValue,
		`{"PartitionKey":"x","RowKey":1}`:      badInput,
		`{"PartitionKey":true,"RowKey":"x"}`:   badInput,
		`[]`:                                   badInput,
		`"x"`:                                  badInput,
		"{\"PartitionKey\":\"\xff\"}":          badInput,
		`{"PartitionKey":"x","RowKey":"y"}  x`: badInput,
		`{"PartitionKey":"x","RowKey@odata.type":"Edm.Int32","RowKey":"1"}`:         badInput,
		`{"PartitionKey":"x","RowKey":"` + strings.Repeat("k", 513) + `"}`:          tooLarge64,
		`{"RowKey":"x","PartitionKey":"` + strings.Repeat("😀", 256) + `x"}`:         tooLarge64,
		`{"PartitionKey":"x","RowKey@odata.type":"Edm.String","RowKey":"x"}`:        "201",
		`{"PartitionKey":"x","RowKey":"y","a@odata.type":"Edm.Int64","b":"\u00e9"}`: "201",
	} {
		require.Equal(t, want, r.outcome(r.do(http.MethodPost, "/acct/tbl", body)), body)
	}
	require.Equal(t, tooLarge64, r.outcome(r.do(http.MethodPut, "/acct/"+key("x", strings.Repeat("k", 513)), "{}")))
	require.Equal(t, badInput, r.outcome(r.do(http.MethodPost, "/acct/tbl", "")))
}

// A value of every type in the three levels of metadata, as a feed and with $select
// (6.1, 6.2, 11.4, A.52, A.76).
func TestLevels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const stored = `"s":"x","i":5,"l@odata.type":"Edm.Int64","l":"9007199254740993","f":0.5,"one@odata.type":"Edm.Double","one":1,` +
		`"nan@odata.type":"Edm.Double","nan":"NaN","inf@odata.type":"Edm.Double","inf":"-Infinity","t":true,` +
		`"d@odata.type":"Edm.DateTime","d":"2020-01-01T03:02:00.1200000+02:00","g@odata.type":"Edm.Guid","g":"C9DA6455-213D-42C9-9A79-3E9149A57833",` +
		`"b@odata.type":"Edm.Binary","b":"AAH/"`
	require.Equal(t, "204", r.outcome(r.do(http.MethodPut, "/acct/"+key("p", "r''"), "{"+stored+"}")))
	const plain = `"s":"x","i":5,"l":"9007199254740993","f":0.5,"one":1.0,"nan":"NaN","inf":"-Infinity","t":true,` +
		`"d":"2020-01-01T01:02:00.12Z","g":"c9da6455-213d-42c9-9a79-3e9149a57833","b":"AAH/"`
	const typed = `"s":"x","i":5,"l@odata.type":"Edm.Int64","l":"9007199254740993","f":0.5,"one":1.0,` +
		`"nan@odata.type":"Edm.Double","nan":"NaN","inf@odata.type":"Edm.Double","inf":"-Infinity","t":true,` +
		`"d@odata.type":"Edm.DateTime","d":"2020-01-01T01:02:00.12Z","g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833",` +
		`"b@odata.type":"Edm.Binary","b":"AAH/"`
	const path = `tbl(PartitionKey='p',RowKey='r''')`
	at, base := "/acct/"+path, r.url+"/acct/"
	got := r.do(http.MethodGet, at, "")
	require.Equal(t, http.StatusOK, got.status, got.body)
	tag := got.header.Get("ETag")
	ts := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(tag, `W/"datetime'`), `'"`), "%3A", ":")
	keys := `"PartitionKey":"p","RowKey":"r'",`
	etag := `"odata.etag":"` + strings.ReplaceAll(tag, `"`, `\"`) + `",`
	metadata := `"odata.metadata":"` + base + `$metadata#tbl`
	links := `"odata.type":"acct.tbl","odata.id":"` + base + path + `",` + etag + `"odata.editLink":"` + path + `",`
	timestamp := `"Timestamp":"` + ts + `",`
	for _, tc := range []struct{ level, target, want string }{
		{"nometadata", at, "{" + keys + timestamp + plain + "}"},
		{"minimalmetadata", at, "{" + metadata + `/@Element",` + etag + keys + timestamp + typed + "}"},
		{"fullmetadata", at, "{" + metadata + `/@Element",` + links + keys + `"Timestamp@odata.type":"Edm.DateTime",` + timestamp + typed + "}"},
		{"nometadata", "/acct/tbl()", `{"value":[{` + keys + timestamp + plain + "}]}"},
		{"minimalmetadata", "/acct/tbl", "{" + metadata + `","value":[{` + etag + keys + timestamp + typed + "}]}"},
		{"fullmetadata", "/acct/tbl()", "{" + metadata + `","value":[{` + links + keys + `"Timestamp@odata.type":"Edm.DateTime",` + timestamp + typed + "}]}"},
		{"nometadata", "/acct/tbl()?$select=zz,l", `{"value":[{"l":"9007199254740993","zz":null}]}`},
		{"minimalmetadata", "/acct/tbl()?$select=l,%20zz", "{" + metadata + `&$select=l,%20zz","value":[{` + etag + `"l@odata.type":"Edm.Int64","l":"9007199254740993","zz":null}]}`},
		{"minimalmetadata", "/acct/tbl()?$select=", "{" + metadata + `&$select=","value":[{` + etag + keys + timestamp + typed + "}]}"},
		{"nometadata", at + "?$select=RowKey,t", `{"RowKey":"r'","t":true}`},
		{"nometadata", "/acct/Tables('TBL')", `{"TableName":"tbl"}`},
		{"minimalmetadata", "/acct/Tables", `{"odata.metadata":"` + base + `$metadata#Tables","value":[{"TableName":"tbl"}]}`},
		{"fullmetadata", "/acct/Tables('tbl')", `{"odata.metadata":"` + base + `$metadata#Tables/@Element","odata.type":"acct.Tables","odata.id":"` + base +
			`Tables('tbl')","odata.editLink":"Tables('tbl')","TableName":"tbl"}`},
	} {
		for how, a := range map[string]received{
			"Accept":  r.do(http.MethodGet, tc.target, "", "Accept", "application/json; odata="+tc.level),
			"$format": r.do(http.MethodGet, tc.target+map[bool]string{true: "&", false: "?"}[strings.Contains(tc.target, "?")]+"$format=application/json;odata="+tc.level, "", "Accept", "application/json;odata=fullmetadata"),
		} {
			require.Equal(t, tc.want, a.body, "%s %s by %s", tc.level, tc.target, how)
			require.Equal(t, "application/json;odata="+tc.level+";streaming=true;charset=utf-8", a.header.Get("Content-Type"))
			require.Equal(t, "no-cache", a.header.Get("Cache-Control"))
			require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		}
	}
	// An entity as it was read can be sent back (5.2).
	full := r.do(http.MethodGet, at, "", "Accept", "application/json;odata=fullmetadata").body
	require.Equal(t, "204", r.outcome(r.do(http.MethodPut, at, full)))
	again := r.do(http.MethodGet, at+"?$select=s,i,l,f,one,nan,inf,t,d,g,b", "", "Accept", "application/json;odata=nometadata").body
	require.Equal(t, "{"+plain+"}", again)
}
