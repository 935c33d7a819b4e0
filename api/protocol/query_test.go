package protocol

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"antipode/services/storageerr"
)

// Parameters come out decoded, in order, with names in lower case.
func TestParseQuery(t *testing.T) {
	tests := []struct {
		raw  string
		want Query
	}{
		{"", nil},
		{"&&", Query{}},
		{"Comp=List&restype=service", Query{{"comp", "List"}, {"restype", "service"}}},
		{"$filter=PartitionKey+eq+%27x%27", Query{{"$filter", "PartitionKey eq 'x'"}}},
		{"%24TOP=1", Query{{"$top", "1"}}},
		{"$format=application/json;odata=nometadata", Query{{"$format", "application/json;odata=nometadata"}}},
		{"a&b=&=c&d=e=f", Query{{"a", ""}, {"b", ""}, {"", "c"}, {"d", "e=f"}}},
		{"include=b&a=1&INCLUDE=a", Query{{"include", "b"}, {"a", "1"}, {"include", "a"}}},
		{"a=%2B%26%3d%00%ff", Query{{"a", "+&=\x00\xff"}}},
		{"\u212A=\u00c4", Query{{"\u212A", "\u00c4"}}},
	}
	for _, tt := range tests {
		if got, err := ParseQuery(tt.raw); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, %v", tt.raw, got, err)
		}
	}
}

// Lookups distinguish an absent parameter from an empty one.
func TestQueryLookup(t *testing.T) {
	q, err := ParseQuery("acl&a=1&b=")
	if err != nil {
		t.Fatal(err)
	}
	if v, sent := q.Lookup("a"); v != "1" || !sent || q.Get("a") != "1" {
		t.Error("a is not its value")
	}
	if !q.Has("acl") || !q.Has("b") || q.Has("c") || q.Get("c") != "" {
		t.Error("presence is wrong")
	}
	if got := q.WithoutEmpty(); !slices.Equal(got, Query{{"a", "1"}}) || len(q) != 3 {
		t.Errorf("without empty ones: %q of %q", got, q)
	}
}

// The items of a list are those of all its parameters, however they are cut.
func TestQueryIncluded(t *testing.T) {
	for _, raw := range []string{"include=Metadata,%20copy,", "include=metadata&a=b&Include=copy", "include=,metadata,,copy"} {
		q, err := ParseQuery(raw)
		if got := slices.Collect(q.Included()); err != nil || !slices.Equal(got, []string{"metadata", "copy"}) {
			t.Errorf("%q: %q, %v", raw, got, err)
		}
	}
	for range (Query{{"include", "a,b"}, {"include", "c"}}).Included() {
		break // The rest is not asked for.
	}
}

// A name that is repeated is refused, whatever its values are and however it is written: a
// signature may cover one value and the request mean another. Only the list may be
// repeated, and not with an empty value.
func TestParseQueryRepeated(t *testing.T) {
	for raw, name := range map[string]string{
		"comp=&comp=metadata": "comp", "comp=metadata&comp": "comp", "comp=a&comp=b": "comp", "prefix=b&prefix=b": "prefix",
		"x=1&Comp=list&cOM%50=list": "comp", "a=1&%61=2": "a", "=1&=": "", "prefix=b&marker=x&prefix=zz": "prefix",
		"include=&include=a": "include", "include=a&include": "include", "sig=a&sig=b": "sig",
	} {
		_, err := ParseQuery(raw)
		e, ok := storageerr.Of(err)
		if !ok || e.Row != storageerr.InvalidQueryParameter || e.Details[0].Value != name {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// The walk over the names costs ordinary queries no memory: the slice is all that is allocated.
func TestParseQueryAllocations(t *testing.T) {
	const raw = "restype=container&comp=list&prefix=logs&delimiter=/&maxresults=100&timeout=30&include=metadata&include=copy"
	if n := testing.AllocsPerRun(100, func() { _, _ = ParseQuery(raw) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// Bad encoding names the parameter; a query has at most 256 parameters.
func TestParseQueryBad(t *testing.T) {
	for raw, name := range map[string]string{"x=1&Top=%zz": "Top", "a=%4": "a", "a=%": "a", "%g1=2": "%g1"} {
		_, err := ParseQuery(raw)
		e, ok := storageerr.Of(err)
		if !ok || e.Row != storageerr.InvalidQueryParameter || e.Details[0].Name != "QueryParameterName" || e.Details[0].Value != name {
			t.Errorf("%q: %v", raw, err)
		}
	}
	if _, err := ParseQuery(strings.Repeat("&include=a", queryParametersMax)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := ParseQuery(strings.Repeat("&include=a", queryParametersMax+1)); !errors.Is(err, storageerr.InvalidQueryParameter) {
		t.Errorf("above the limit: %v", err)
	}
}
