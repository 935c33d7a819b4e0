package tables

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
	"antipode/services"
)

// listTables follows the continuations of Query Tables to their end. It returns the names
// and the number of pages.
func (r *rig) listTables(options string) (names []string, pages int) {
	r.t.Helper()
	names = []string{}
	for next := ""; pages < 100; {
		a := r.do(http.MethodGet, "/acct/Tables?"+options+next, "")
		require.Equal(r.t, http.StatusOK, a.status, a.body)
		var doc struct{ Value []struct{ TableName string } }
		require.NoError(r.t, json.Unmarshal([]byte(a.body), &doc))
		for _, table := range doc.Value {
			names = append(names, table.TableName)
		}
		pages++
		token := a.header.Get("x-ms-continuation-NextTableName")
		if token == "" {
			return names, pages
		}
		next = "&NextTableName=" + url.QueryEscape(token)
	}
	r.t.Fatal("the pages do not end: ", options)
	return nil, 0
}

// Query Tables pages to an end whatever the case of the names and of what the filter
// compares them with, in pages of any size and with little work a page (11.3, 12).
func TestTablePages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	all := []string{"MyA", "myb", "MYC", "MyD", "Other", "tbl", "Zed"}
	for _, name := range all {
		if name != "tbl" {
			require.Equal(t, http.StatusCreated, r.do(http.MethodPost, "/acct/Tables", `{"TableName":"`+name+`"}`).status)
		}
	}
	with := func(work int) *rig {
		return r.with(func(h *Handler) {
			h.Scans = services.NewScans(clock.System{})
			h.Scans.WorkMax = work
		})
	}
	for _, work := range []int{0, 1, 100} {
		r := with(work)
		for filter, want := range map[string][]string{
			"": all,
			"TableName ge 'My' and TableName lt 'Mz'":   {"MyA", "myb", "MYC", "MyD"},
			"TableName ge 'MY' and TableName lt 'MZ'":   {"MyA", "myb", "MYC", "MyD"},
			"TableName ge 'my' and TableName lt 'mz'":   {"MyA", "myb", "MYC", "MyD"},
			"TableName gt 'MYA' and TableName le 'myd'": {"myb", "MYC", "MyD"},
			"TableName ge 'mYb'":                        {"myb", "MYC", "MyD", "Other", "tbl", "Zed"},
			"TableName ne 'myc'":                        {"MyA", "myb", "MyD", "Other", "tbl", "Zed"},
			"TableName eq 'mYC' or TableName eq 'ZED'":  {"MYC", "Zed"},
			"not (TableName lt 'OTHER')":                {"Other", "tbl", "Zed"},
			"TableName eq 'none' or TableName eq 'zzz'": {},
			"TableName lt 'a' and TableName gt 'b'":     {},
		} {
			for _, top := range []int{1, 2, 3, 1000} {
				got, _ := r.listTables(fmt.Sprintf("$top=%d&$filter=%s", top, url.QueryEscape(filter)))
				require.Equal(t, want, got, "%q, $top=%d, work %d", filter, top, work)
			}
		}
	}
	// A token of a version before this one held the name as it was created.
	a := r.do(http.MethodGet, "/acct/Tables?NextTableName=1!4!TVlD", "")
	require.True(t, strings.HasPrefix(a.body, `{"value":[{"TableName":"MYC"},`), a.body)
	// A filter that finds nothing does not walk all tables in one request.
	_, pages := with(1).listTables("$filter=" + url.QueryEscape("TableName eq 'aaa' or TableName eq 'zzz'"))
	require.Equal(t, len(all), pages)
	// One that can find nothing walks none.
	_, pages = with(1).listTables("$filter=" + url.QueryEscape("TableName ne 'a' and not (TableName ne 'a')"))
	require.Equal(t, 1, pages)
}
