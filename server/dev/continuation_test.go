package dev

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pages of a query go on where the last one ended, for entities and for tables, and
// the last one carries no continuation (protocol/table.md 12).
func TestContinuation(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	const rows = 25
	for i := range rows {
		for _, pk := range []string{"query", "query-not"} {
			target := fmt.Sprintf("/northacct/tbl(PartitionKey='%s',RowKey='%03d')", pk, i)
			a := call(t, c.gateway, "northacct", http.MethodPut, target, `{"v":"1"}`)
			require.Equal(t, http.StatusNoContent, a.status, a.body)
		}
	}
	for i := range 6 {
		a := call(t, c.gateway, "northacct", http.MethodPost, "/northacct/Tables", fmt.Sprintf(`{"TableName":"other%d"}`, i))
		require.Equal(t, http.StatusCreated, a.status, a.body)
	}

	var keys []string
	walk := func(target string, next []string, each func(map[string]string)) (pages int) {
		for more := ""; ; {
			a := call(t, c.gateway, "northacct", http.MethodGet, target+more, "")
			require.Equal(t, http.StatusOK, a.status, a.body)
			var doc struct{ Value []map[string]string }
			require.NoError(t, json.Unmarshal([]byte(a.body), &doc))
			for _, row := range doc.Value {
				each(row)
			}
			if pages++; a.header.Get("x-ms-continuation-"+next[0]) == "" {
				return pages
			}
			more = ""
			for _, name := range next {
				more += "&" + name + "=" + url.QueryEscape(a.header.Get("x-ms-continuation-"+name))
			}
			require.Less(t, pages, 10, "the pages do not end")
		}
	}
	pages := walk("/northacct/tbl()?$top=10&$filter="+url.QueryEscape("PartitionKey eq 'query'"),
		[]string{"NextPartitionKey", "NextRowKey"}, func(row map[string]string) { keys = append(keys, row["RowKey"]) })
	require.Equal(t, 3, pages)
	require.Len(t, keys, rows)
	require.IsIncreasing(t, keys)

	keys = nil
	pages = walk("/northacct/Tables?$top=3", []string{"NextTableName"}, func(row map[string]string) { keys = append(keys, row["TableName"]) })
	require.Equal(t, 3, pages)
	require.Equal(t, []string{"other0", "other1", "other2", "other3", "other4", "other5", "tbl"}, keys)

	// A name does not rest here: a table that was deleted can be created again at once.
	for range 2 {
		a := call(t, c.gateway, "northacct", http.MethodDelete, "/northacct/Tables('tbl')", "")
		require.Equal(t, http.StatusNoContent, a.status, a.body)
		createTable(t, c, "northacct")
	}
	require.Equal(t, 1, walk("/northacct/tbl()?$top=10", []string{"NextPartitionKey"}, func(map[string]string) { t.Error("the table is not empty") }))
}
