package conformance

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

const (
	valueTooLarge = "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded " +
		"and the maximum number of characters should be 32K or less."
	tooManyProperties = "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. " +
		"Each entity also has 3 system properties."
)

// Cases 14 to 18: names, numbers and sizes of properties.
func propertyCases() []testCase {
	return []testCase{
		{14, "252 properties", mostProperties},
		{15, "names of properties", propertyNames},
		{16, "names that differ in case", namesDifferInCase},
		{17, "largest values", largestValues},
		{18, "largest entity", largestEntity},
	}
}

// numbered are n properties as JSON members.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"p%03d":%d`, i, i)
	}
	return b.String()
}

func mostProperties(r *rig) {
	r.create()
	r.added("p", "252", numbered(252)).has("p", "252", numbered(252))
	r.insert("p", "253", numbered(253)).fails(http.StatusBadRequest, "TooManyProperties", tooManyProperties)
	r.do("MERGE", r.path("p", "252"), `{"new":1}`, "If-Match", "*").fails(http.StatusBadRequest, "TooManyProperties", tooManyProperties)
	r.do("MERGE", r.path("p", "252"), `{"p000":0}`, "If-Match", "*").is(http.StatusNoContent)
	a := r.read(r.path("p", "252"))
	require.NotContains(r, a.is(http.StatusOK).decoded(), "new")
	require.Len(r, a.decoded(), 252+5) // Beside three system properties two of OData.
}

func propertyNames(r *rig) {
	r.create()
	longest := strings.Repeat("n", 255)
	r.added("p", "255", `,"`+longest+`":1`).has("p", "255", `,"`+longest+`":1`)
	r.insert("p", "256", `,"`+longest+`n":1`).fails(http.StatusBadRequest, "PropertyNameTooLong", "The property name exceeds the maximum allowed length (255).")
	for _, name := range []string{"a-b", "a b", "a.b", "1a", ""} {
		r.insert("p", "invalid", `,"`+name+`":1`).fails(http.StatusBadRequest, "PropertyNameInvalid", "")
	}
	r.added("p", "legal", `,"_a":1,"ꀕ":2`)
	r.read(r.path("p", "legal")).is(http.StatusOK).has("p", "legal", `,"_a":1,"ꀕ":2`)
}

func namesDifferInCase(r *rig) {
	r.create()
	r.added("p", "r", `,"a":1,"A":2`)
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"a":1,"A":2`)
	r.insert("p", "twice", `,"a":1,"a":2`).fails(http.StatusBadRequest, "DuplicatePropertiesSpecified", "")
}

// binary is a property of n bytes.
func binary(name string, n int) string {
	return `,"` + name + `@odata.type":"Edm.Binary","` + name + `":"` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("b", n))) + `"`
}

func largestValues(r *rig) {
	r.create()
	for i, unit := range []string{"s", "é", "😀"} {
		text := strings.Repeat(unit, 32768/max(1, i)) // The last has two units of UTF-16.
		property := `,"s":` + quoted(text)
		rk := fmt.Sprint("string", i)
		r.added("p", rk, property)
		r.read(r.path("p", rk)).is(http.StatusOK).has("p", rk, property)
		r.insert("p", "too long", `,"s":`+quoted(text+"s")).fails(http.StatusBadRequest, "PropertyValueTooLarge", valueTooLarge)
	}
	r.added("p", "binary", binary("b", 65536))
	r.read(r.path("p", "binary")).is(http.StatusOK).has("p", "binary", binary("b", 65536))
	r.insert("p", "too long", binary("b", 65537)).fails(http.StatusBadRequest, "PropertyValueTooLarge", valueTooLarge)
}

func largestEntity(r *rig) {
	r.create()
	var all string
	for i := range 16 {
		all += binary(fmt.Sprint("b", i), 65536)
	}
	const message = "The entity is larger than the maximum allowed size (1MB)."
	r.insert("p", "r", all).fails(http.StatusBadRequest, "EntityTooLarge", message)

	// To the byte, by the published formula.
	fits := func(rest int) string {
		var b strings.Builder
		size := 4 + 2*(len("p")+len("r"))
		for i := range 15 {
			b.WriteString(binary(fmt.Sprintf("b%02d", i), 65536))
			size += 8 + 2*len("b00") + 65536 + 4
		}
		b.WriteString(binary("b15", 1<<20-size-8-2*len("b15")-4+rest))
		return b.String()
	}
	r.insert("p", "r", fits(1)).fails(http.StatusBadRequest, "EntityTooLarge", message)
	r.added("p", "r", fits(0))
	r.do("MERGE", r.path("p", "r"), `{"more":true}`, "If-Match", "*").fails(http.StatusBadRequest, "EntityTooLarge", message)
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", fits(0))
}

// Cases 19 to 25: types.
func typeCases() []testCase {
	return []testCase{
		{19, "numbers without annotations", plainNumbers},
		{20, "Int64", int64s},
		{21, "Double", doubles},
		{22, "DateTime with an offset", offsets},
		{23, "DateTime below 1601", early},
		{24, "dates are strings without an annotation", plainDates},
		{25, "null", nulls},
	}
}

func plainNumbers(r *rig) {
	r.create()
	for _, c := range []struct{ rk, in, out string }{
		{"int", `,"x":5`, `,"x":5`}, {"double", `,"x":5.0`, `,"x":5.0`}, {"string", `,"x":"5"`, `,"x":"5"`},
	} {
		r.added("p", c.rk, c.in).has("p", c.rk, c.out)
		r.read(r.path("p", c.rk)).is(http.StatusOK).has("p", c.rk, c.out)
	}
	require.Equal(r, []string{"p/double", "p/int"}, r.read(r.filtered("x eq 5")).keys())
	require.Equal(r, []string{"p/double"}, r.read(r.filtered("x eq 5.0")).keys())
	require.Equal(r, []string{"p/string"}, r.read(r.filtered("x eq '5'")).keys())
	require.Empty(r, r.read(r.filtered("PartitionKey eq 5")).keys())
}

func int64s(r *rig) {
	r.create()
	for i, n := range []string{"9007199254740993", "-9223372036854775808", "9223372036854775807", "0"} {
		property := `,"Big@odata.type":"Edm.Int64","Big":"` + n + `"`
		rk := fmt.Sprint(i)
		r.added("p", rk, property).has("p", rk, property)
		r.read(r.path("p", rk)).is(http.StatusOK).has("p", rk, property)
		require.Equal(r, []string{"p/" + rk}, r.read(r.filtered("Big eq "+n+"L")).keys())
	}
	r.insert("p", "more", `,"Big@odata.type":"Edm.Int64","Big":"9223372036854775808"`).fails(http.StatusBadRequest, "InvalidInput", "")
	r.insert("p", "other", `,"Big@odata.type":"Edm.Decimal","Big":"1"`).fails(http.StatusBadRequest, "InvalidInput", "")
}

func doubles(r *rig) {
	r.create()
	for i, c := range []struct{ in, out string }{
		{`1`, `,"D":1.0`},
		{`"1.5"`, `,"D":1.5`},
		{`-0.0`, `,"D":-0.0`},
		{`3.14`, `,"D":3.14`},
		{`"NaN"`, `,"D@odata.type":"Edm.Double","D":"NaN"`},
		{`"Infinity"`, `,"D@odata.type":"Edm.Double","D":"Infinity"`},
		{`"-Infinity"`, `,"D@odata.type":"Edm.Double","D":"-Infinity"`},
	} {
		rk := fmt.Sprint(i)
		r.added("p", rk, `,"D@odata.type":"Edm.Double","D":`+c.in).has("p", rk, c.out)
		r.read(r.path("p", rk)).is(http.StatusOK).has("p", rk, c.out)
	}
	r.insert("p", "beyond", `,"D":1.797693134862316e308`).fails(http.StatusBadRequest, "InvalidInput", "")
}

func offsets(r *rig) {
	r.create()
	for i, c := range [][2]string{
		{"2020-01-01T03:02:00.1200000+02:00", "2020-01-01T01:02:00.12Z"},
		{"2020-01-01T01:02:00", "2020-01-01T01:02:00Z"},
		{"2020-01-01T01:02:00.12345678Z", "2020-01-01T01:02:00.1234567Z"},
		{"9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"},
		{"1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"},
	} {
		rk := fmt.Sprint(i)
		out := `,"W@odata.type":"Edm.DateTime","W":"` + c[1] + `"`
		r.added("p", rk, `,"W":"`+c[0]+`","W@odata.type":"Edm.DateTime"`).has("p", rk, out)
		r.read(r.path("p", rk)).is(http.StatusOK).has("p", rk, out)
	}
	require.Equal(r, []string{"p/0"}, r.read(r.filtered("W eq datetime'2020-01-01T02:02:00.12+01:00'")).keys())
}

func early(r *rig) {
	r.create()
	r.insert("p", "r", `,"When@odata.type":"Edm.DateTime","When":"0001-01-01T00:00:00Z"`).fails(http.StatusBadRequest, "OutOfRangeInput",
		"The 'When' parameter of value '01/01/0001 00:00:00' is out of range.")
	for i, sent := range []string{`"0001-01-01T00:00:00Z"`, `"0001-01-01T00:00:00","Timestamp@odata.type":"Edm.DateTime"`, `null`, `7`} {
		rk := fmt.Sprint(i)
		a := r.added("p", rk, `,"Timestamp":`+sent).has("p", rk, "")
		require.NotContains(r, a.stamp(), "0001-")
		r.read(r.path("p", rk)).is(http.StatusOK).has("p", rk, "")
	}
}

func plainDates(r *rig) {
	r.create()
	r.added("p", "r", `,"d":"2020-01-01T00:00:00Z"`).has("p", "r", `,"d":"2020-01-01T00:00:00Z"`)
	require.Empty(r, r.read(r.filtered("d eq datetime'2020-01-01T00:00:00Z'")).keys())
	require.Equal(r, []string{"p/r"}, r.read(r.filtered("d eq '2020-01-01T00:00:00Z'")).keys())
}

func nulls(r *rig) {
	r.create()
	r.added("p", "r", `,"a":null,"b":1`).has("p", "r", `,"b":1`)
	r.do("MERGE", r.path("p", "r"), `{"b":null}`, "If-Match", "*").is(http.StatusNoContent)
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", `,"b":1`)
	r.do("PUT", r.path("p", "r"), `{"b":null}`, "If-Match", "*").is(http.StatusNoContent)
	r.read(r.path("p", "r")).is(http.StatusOK).has("p", "r", "")
}
