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
		{"a=1&A=2", Query{{"a", "1"}, {"a", "2"}}},
		{"a=%2B%26%3d%00%ff", Query{{"a", "+&=\x00\xff"}}},
		{"\u212A=\u00c4", Query{{"\u212A", "\u00c4"}}},
	}
	for _, tt := range tests {
		if got, err := ParseQuery(tt.raw); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, %v", tt.raw, got, err)
		}
	}
}

// Lookups distinguish an absent parameter from an empty one and give the first value.
func TestQueryLookup(t *testing.T) {
	q, err := ParseQuery("acl&a=1&a=2&b=")
	if err != nil {
		t.Fatal(err)
	}
	if v, sent := q.Lookup("a"); v != "1" || !sent || q.Get("a") != "1" {
		t.Error("a is not its first value")
	}
	if !q.Has("acl") || !q.Has("b") || q.Has("c") || q.Get("c") != "" {
		t.Error("presence is wrong")
	}
	if got := q.WithoutEmpty(); !slices.Equal(got, Query{{"a", "1"}, {"a", "2"}}) || len(q) != 4 {
		t.Errorf("without empty ones: %q of %q", got, q)
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
	if _, err := ParseQuery(strings.Repeat("&a", queryParametersMax)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := ParseQuery(strings.Repeat("&a", queryParametersMax+1)); !errors.Is(err, storageerr.InvalidQueryParameter) {
		t.Errorf("above the limit: %v", err)
	}
}
