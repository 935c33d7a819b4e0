package odata

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

// The rules of 1.3, with A.7, A.8, A.9, A.13.
func TestParsePath(t *testing.T) {
	long := strings.Repeat("%F0%9F%98%80", 250) // 500 units
	for _, tc := range []struct {
		raw  string
		want Resource
	}{
		{"", Resource{Kind: KindRoot}},
		{"/", Resource{Kind: KindRoot}},
		{"/$batch", Resource{Kind: KindBatch}},
		{"%24batch", Resource{Kind: KindBatch}},
		{"/Tables", Resource{Kind: KindTables}},
		{"/Tables/", Resource{Kind: KindTables}},
		{"tables()", Resource{Kind: KindTables}},
		{"/$batch/", Resource{Kind: KindBatch}},
		{"/Tables('Blogs')/", Resource{Kind: KindTable, Table: "Blogs"}},
		{"/Blogs()/", Resource{Kind: KindEntities, Table: "Blogs"}},
		{"/Tables('Blogs')", Resource{Kind: KindTable, Table: "Blogs"}},
		{"/Tables(%27Blogs%27)", Resource{Kind: KindTable, Table: "Blogs"}},
		{"/Blogs", Resource{Kind: KindEntities, Table: "Blogs"}},
		{"/Blogs()", Resource{Kind: KindEntities, Table: "Blogs"}},
		{"/Blogs%28%29", Resource{Kind: KindEntities, Table: "Blogs"}},
		{"/$MetricsCapacityBlob()", Resource{Kind: KindEntities, Table: "$MetricsCapacityBlob"}},
		{"T(PartitionKey='p',RowKey='r')", Resource{Kind: KindEntity, Table: "T", PK: "p", RK: "r"}},
		{"T(RowKey='r',PartitionKey='p')", Resource{Kind: KindEntity, Table: "T", PK: "p", RK: "r"}},
		{"T(PartitionKey='p', RowKey='r')", Resource{Kind: KindEntity, Table: "T", PK: "p", RK: "r"}},
		{"T(PartitionKey='p',%20RowKey='r')", Resource{Kind: KindEntity, Table: "T", PK: "p", RK: "r"}},
		{"T(PartitionKey='',RowKey='')", Resource{Kind: KindEntity, Table: "T"}},
		{"T(PartitionKey='',RowKey='rk')", Resource{Kind: KindEntity, Table: "T", RK: "rk"}},
		{"T(PartitionKey='p',RowKey='O''Hara')", Resource{Kind: KindEntity, Table: "T", PK: "p", RK: "O'Hara"}},
		{"T(PartitionKey='p',RowKey='O%27%27Hara')", Resource{Kind: KindEntity, Table: "T", PK: "p", RK: "O'Hara"}},
		{"T(PartitionKey='p',RowKey='O'%27Hara%27)", Resource{Kind: KindEntity, Table: "T", PK: "p", RK: "O'Hara"}},
		{"T(PartitionKey='''',RowKey='''''')", Resource{Kind: KindEntity, Table: "T", PK: "'", RK: "''"}},
		{"T(PartitionKey='a+b',RowKey='a%2Bb')", Resource{Kind: KindEntity, Table: "T", PK: "a+b", RK: "a+b"}},
		{"T(PartitionKey='a,b)=(',RowKey='%2525')", Resource{Kind: KindEntity, Table: "T", PK: "a,b)=(", RK: "%25"}},
		{"T(PartitionKey='..',RowKey='.')", Resource{Kind: KindEntity, Table: "T", PK: "..", RK: "."}},
		{
			"T(PartitionKey='" + long + "',RowKey='" + long + "')",
			Resource{Kind: KindEntity, Table: "T", PK: strings.Repeat("😀", 250), RK: strings.Repeat("😀", 250)},
		},
	} {
		got, err := ParsePath(tc.raw)
		if err != nil || got != tc.want {
			t.Errorf("%.60s: %+v, %v", tc.raw, got, err)
		}
	}
}

func TestParsePathErrors(t *testing.T) {
	for raw, want := range map[string]storageerr.Row{
		"T(PartitionKey='p',RowKey='O'Hara')":       storageerr.QuerySyntax,
		`T(PartitionKey="p",RowKey="r")`:            storageerr.QuerySyntax,
		"T(PartitionKey='p')":                       storageerr.QuerySyntax,
		"T(PartitionKey='p',PartitionKey='p')":      storageerr.QuerySyntax,
		"T(PartitionKey='p',RowKey='r',RowKey='r')": storageerr.QuerySyntax,
		"T(partitionkey='p',RowKey='r')":            storageerr.QuerySyntax,
		"T(PartitionKey=p,RowKey=r)":                storageerr.QuerySyntax,
		"T(PartitionKey='p',RowKey='r'":             storageerr.QuerySyntax,
		"T(PartitionKey='p',RowKey='r')x":           storageerr.QuerySyntax,
		"T(PartitionKey='p' RowKey='r')":            storageerr.QuerySyntax,
		"T('p')":                                    storageerr.QuerySyntax,
		"T(":                                        storageerr.QuerySyntax,
		"(PartitionKey='p',RowKey='r')":             storageerr.QuerySyntax,
		"Tables('T'":                                storageerr.QuerySyntax,
		"Tables(T)":                                 storageerr.QuerySyntax,
		"//":                                        storageerr.InvalidResourceName,
		"/Tables//":                                 storageerr.InvalidResourceName,
		"/Tables%2F":                                storageerr.InvalidResourceName,
		"Tables('T')/x":                             storageerr.QuerySyntax,
		"T(PartitionKey='%zz',RowKey='r')":          storageerr.QuerySyntax,
		"T(PartitionKey='%f',RowKey='%f":            storageerr.QuerySyntax,
		"T(PartitionKey='%ff',RowKey='r')":          storageerr.QuerySyntax,
		"T(PartitionKey='a%2Fb',RowKey='r')":        storageerr.QuerySyntax,
		"T(PartitionKey='a/b',RowKey='r')":          storageerr.QuerySyntax,
		`T(PartitionKey='a%5Cb',RowKey='r')`:        storageerr.QuerySyntax,
		"T(PartitionKey='a%23b',RowKey='r')":        storageerr.OutOfRangeInput,
		"T(PartitionKey='p',RowKey='%01')":          storageerr.OutOfRangeInput,
		"T(PartitionKey='p',RowKey='%C2%85')":       storageerr.OutOfRangeInput,
		"T(PartitionKey='p',RowKey='" + strings.Repeat("x", 513) + "')": storageerr.PropertyValueTooLarge,
		"a-b": storageerr.InvalidResourceName,
		"a/b": storageerr.InvalidResourceName,
		"a$b": storageerr.InvalidResourceName,
		"é()": storageerr.InvalidResourceName,
	} {
		if got, err := ParsePath(raw); !errors.Is(err, want) {
			t.Errorf("%.60s: %+v, %v, want %v", raw, got, err, want)
		}
	}
}

// A.9: a Location may be used as the request URI.
func TestEntityPath(t *testing.T) {
	if got := string(AppendEntityPath(nil, "T", "O'Hara", `a b+c%&=,()"é😀`)); got !=
		"T(PartitionKey='O''Hara',RowKey='a%20b%2Bc%25%26%3D%2C%28%29%22%C3%A9%F0%9F%98%80')" {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		pk, rk := rapid.String().Draw(t, "pk"), rapid.String().Draw(t, "rk")
		if entity.ValidateURLKey(pk) != nil || entity.ValidateURLKey(rk) != nil {
			return
		}
		raw := string(AppendEntityPath([]byte("/"), "Blogs", pk, rk))
		got, err := ParsePath(raw)
		if want := (Resource{Kind: KindEntity, Table: "Blogs", PK: pk, RK: rk}); err != nil || got != want {
			t.Fatalf("%s: %+v, %v", raw, got, err)
		}
	})
}

// Any path gives a resource or a row, and a resource prints to a path that means it.
func FuzzParsePath(f *testing.F) {
	f.Add("/T(PartitionKey='a%27%27',%20RowKey='')")
	f.Add("Tables('x''y')")
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := ParsePath(raw)
		if err != nil {
			if _, ok := storageerr.Of(err); !ok {
				t.Fatalf("not a row: %v", err)
			}
			return
		}
		var again []byte
		switch r.Kind {
		case KindTable:
			again = AppendTablePath(nil, r.Table)
		case KindEntity:
			again = AppendEntityPath(nil, r.Table, r.PK, r.RK)
		default:
			return
		}
		if got, err := ParsePath(string(again)); err != nil || got != r {
			t.Fatalf("%q is %+v, prints %s, which is %+v, %v", raw, r, again, got, err)
		}
	})
}
