package dev

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/test/rest"
)

// sdkTable is the official client of northacct's table tbl; suffix addresses the
// secondary. It sends no request again whose outcome is unknown, over the connections that goleak knows.
func sdkTable(t *testing.T, c *Cluster, suffix string) *aztables.Client {
	t.Helper()
	cred, err := aztables.NewSharedKeyCredential("northacct", base64.StdEncoding.EncodeToString(key64))
	require.NoError(t, err)
	svc, err := aztables.NewServiceClientWithSharedKey("http://"+c.gateway.Of(geo.Table)+"/northacct"+suffix, cred, &aztables.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: http.DefaultClient, Retry: rest.RetryBusy()},
	})
	require.NoError(t, err)
	return svc.NewClient("tbl")
}

func action(kind aztables.TransactionType, pk, rk, props string) aztables.TransactionAction {
	return aztables.TransactionAction{
		ActionType: kind, Entity: fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q%s}`, pk, rk, props),
	}
}

// listed is the rows of a filter as RowKey=v, following the continuations; none of a table that has not arrived.
func listed(t *testing.T, table *aztables.Client, filter string, top int32) (rows []string) {
	t.Helper()
	pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter, Top: &top, Select: to.Ptr("RowKey,v")})
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		var said *azcore.ResponseError
		if errors.As(err, &said) && said.StatusCode == http.StatusNotFound {
			return nil
		}
		require.NoError(t, err, filter)
		require.LessOrEqual(t, len(page.Entities), int(top))
		for _, b := range page.Entities {
			var e struct {
				RowKey string
				V      any
			}
			require.NoError(t, json.Unmarshal(b, &e))
			rows = append(rows, fmt.Sprint(e.RowKey, "=", e.V))
		}
	}
	return rows
}

// The official client's transactions: all kinds of actions, 100 of them, conditions, and
// failures that change nothing; what it commits is listed at both locations by filters,
// in pages.
//
// Capability: Clients: Official SDKs against both locations.
func TestSDKTransactions(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	table, second := sdkTable(t, c, ""), sdkTable(t, c, "-secondary")
	ctx := t.Context()

	var actions []aztables.TransactionAction
	for i := range 100 {
		actions = append(actions, action(aztables.TransactionTypeAdd, "p", fmt.Sprintf("%03d", i), fmt.Sprintf(`,"v":%d,"kept":true`, i)))
	}
	_, err := table.SubmitTransaction(ctx, actions, nil)
	require.NoError(t, err)
	got, err := table.GetEntity(ctx, "p", "004", nil)
	require.NoError(t, err)
	conditional := action(aztables.TransactionTypeUpdateMerge, "p", "004", `,"v":"conditional"`)
	conditional.IfMatch = &got.ETag
	changes := []aztables.TransactionAction{
		action(aztables.TransactionTypeUpdateMerge, "p", "000", `,"v":"merged"`),
		action(aztables.TransactionTypeUpdateReplace, "p", "001", `,"v":"replaced"`),
		action(aztables.TransactionTypeInsertMerge, "p", "002", `,"v":"upmerged"`),
		action(aztables.TransactionTypeInsertReplace, "p", "new", `,"v":"upserted"`),
		action(aztables.TransactionTypeDelete, "p", "003", ""),
		conditional,
		action(aztables.TransactionTypeAdd, "p", "more", `,"v":"added"`),
	}
	_, err = table.SubmitTransaction(ctx, changes, nil)
	require.NoError(t, err)

	// Each of these fails as a whole: its last action is what cannot be done.
	for message, last := range map[string]aztables.TransactionAction{
		"1:The specified entity already exists.":                               action(aztables.TransactionTypeAdd, "p", "more", ""),
		"1:The specified resource does not exist.":                             action(aztables.TransactionTypeDelete, "p", "003", ""),
		"1:The update condition specified in the request was not satisfied.":   conditional,
		"1:All commands in a batch must operate on same entity group.":         action(aztables.TransactionTypeAdd, "q", "x", ""),
		"1:The batch request contains multiple changes with same row key. An ": action(aztables.TransactionTypeDelete, "p", "lost", ""),
	} {
		_, err := table.SubmitTransaction(ctx, []aztables.TransactionAction{action(aztables.TransactionTypeInsertReplace, "p", "lost", ""), last}, nil)
		require.ErrorContains(t, err, message)
	}
	_, err = table.SubmitTransaction(ctx, append(actions, action(aztables.TransactionTypeAdd, "p", "100", "")), nil)
	require.ErrorContains(t, err, "99:The batch request operation exceeds the maximum 100 changes per change set.")

	last := listed(t, table, "RowKey gt '099'", 1000)
	require.Equal(t, []string{"more=added", "new=upserted"}, last)
	eventually(t, "all arrives", func() bool { return fmt.Sprint(listed(t, second, "RowKey gt '099'", 1000)) == fmt.Sprint(last) })
	for _, at := range []*aztables.Client{table, second} {
		require.Len(t, listed(t, at, "PartitionKey eq 'p'", 7), 101)
		require.Equal(t, []string{"000=merged", "001=replaced", "002=upmerged", "004=conditional", "005=5"},
			listed(t, at, "PartitionKey eq 'p' and RowKey lt '006'", 2))
		require.Equal(t, []string{"001=replaced", "more=added", "new=upserted"}, listed(t, at, "PartitionKey eq 'p' and not kept", 1000))
		require.Equal(t, []string{"098=98", "099=99"}, listed(t, at, "v ge 98 and (kept eq true or v eq 'x')", 1000))
		require.Empty(t, listed(t, at, "PartitionKey eq 'q' or RowKey eq 'lost' or RowKey eq '100'", 1000))
	}
	here, err := table.GetEntity(ctx, "p", "000", nil)
	require.NoError(t, err)
	there, err := second.GetEntity(ctx, "p", "000", nil)
	require.NoError(t, err)
	require.Equal(t, here.ETag, there.ETag)
	_, err = second.SubmitTransaction(ctx, changes[:1], nil)
	var refused *azcore.ResponseError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "403 InsufficientAccountPermissions", fmt.Sprint(refused.StatusCode, " ", refused.ErrorCode))
}

// A transaction is one change (invariant 2): readers that loop at both locations while
// 200 of them flip two rows of a partition never see a mixed pair, nor an older pair
// after a newer one.
//
// Capability: The primary location: A transaction is never half visible.
func TestTransactionsAreAtomic(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	table := sdkTable(t, c, "")
	flip := func(n int) error {
		v := fmt.Sprintf(`,"v":%d`, n)
		_, err := table.SubmitTransaction(t.Context(), []aztables.TransactionAction{
			action(aztables.TransactionTypeInsertReplace, "p", "a", v), action(aztables.TransactionTypeInsertReplace, "p", "b", v),
		}, nil)
		return err
	}
	require.NoError(t, flip(0))
	eventually(t, "the first pair arrives", func() bool { return len(readPair(t.Context(), c.gateway, "-secondary")) == 2 })

	const flips = 200
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var g errgroup.Group
	seen := make([]int, 2)
	for i, suffix := range []string{"", "-secondary"} {
		g.Go(func() error {
			last := time.Now()
			for was, reads := -1, 0; was < flips && ctx.Err() == nil; reads++ {
				p := readPair(ctx, c.gateway, suffix)
				if time.Since(last) > stallMax {
					cancel()
					return fmt.Errorf("at %q: nothing new after %d", suffix, was)
				}
				if p == nil {
					continue // No range led for a moment.
				}
				if len(p) != 2 || p[0] != p[1] || p[0] < was {
					cancel()
					return fmt.Errorf("read %d at %q: %v after %d", reads, suffix, p, was)
				}
				if p[0] > was {
					seen[i]++
					last = time.Now()
				}
				was = p[0]
			}
			return ctx.Err()
		})
	}
	for n := 1; n <= flips && ctx.Err() == nil; n++ {
		require.NoError(t, flip(n))
	}
	require.NoError(t, g.Wait())
	require.Greater(t, seen[0], flips/10, "the reader at the primary saw too few pairs")
	require.Greater(t, seen[1], flips/10, "the reader at the secondary saw too few pairs")
}

// readPair reads both rows in one query; nil where that fails.
func readPair(ctx context.Context, p Ports, suffix string) (values []int) {
	if ctx.Err() != nil {
		return nil
	}
	a, err := try(p, "northacct", http.MethodGet, "/northacct"+suffix+"/tbl()?$filter=PartitionKey%20eq%20'p'&$select=v", "")
	var doc struct{ Value []struct{ V int } }
	if err != nil || a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &doc) != nil {
		return nil
	}
	for _, row := range doc.Value {
		values = append(values, row.V)
	}
	return values
}

// A transaction near its 4 MiB and an entity near its 1 MiB reach the other location
// whole; a batch with a query is answered there, one that writes is refused, also when
// another location forwards it.
//
// Capability: Clients: Bounded work.
func TestBatchAcrossLocations(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	large := func(parts int) string {
		var b strings.Builder
		for i := range parts {
			fmt.Fprintf(&b, `,"s%d":"%s"`, i, strings.Repeat("x", 32768))
		}
		return b.String()
	}
	var actions []aztables.TransactionAction
	for i := range 8 {
		actions = append(actions, action(aztables.TransactionTypeAdd, "large", fmt.Sprint(i), large(15)))
	}
	_, err := sdkTable(t, c, "").SubmitTransaction(t.Context(), actions, nil)
	require.NoError(t, err)
	_, err = sdkTable(t, c, "").AddEntity(t.Context(), action(aztables.TransactionTypeAdd, "one", "0", large(15)).Entity, nil)
	require.NoError(t, err)
	second := sdkTable(t, c, "-secondary")
	eventually(t, "the entity arrives", func() bool {
		_, err := second.GetEntity(t.Context(), "one", "0", nil)
		return err == nil
	})
	eventually(t, "the transaction arrives", func() bool { return len(listed(t, second, "PartitionKey eq 'large'", 1000)) == 8 })
	here, err := sdkTable(t, c, "").GetEntity(t.Context(), "large", "7", nil)
	require.NoError(t, err)
	there, err := second.GetEntity(t.Context(), "large", "7", nil)
	require.NoError(t, err)
	require.Equal(t, here.ETag, there.ETag)
	require.Greater(t, len(there.Value), 15*32768)

	query := "--b\r\nContent-Type: application/http\r\n\r\nGET http://h/northacct-secondary/tbl(PartitionKey='large', RowKey='7')?$select=RowKey HTTP/1.1\r\n" +
		"Accept: application/json;odata=nometadata\r\n\r\n--b--\r\n"
	write := "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n" +
		"DELETE http://h/northacct-secondary/tbl(PartitionKey='large', RowKey='7') HTTP/1.1\r\n\r\n\r\n--c--\r\n--b--\r\n"
	for name, p := range map[string]Ports{"gateway": c.gateway, "north": c.ports[North], "south": c.ports[South]} {
		a := call(t, p, "northacct", http.MethodPost, "/northacct-secondary/$batch", query, "Content-Type", "multipart/mixed; boundary=b")
		require.Equal(t, http.StatusAccepted, a.status, "%s: %s", name, a.body)
		require.Contains(t, a.body, "\r\n\r\n"+`{"RowKey":"7"}`+"\r\n--batchresponse_", name)
		a = call(t, p, "northacct", http.MethodPost, "/northacct-secondary/$batch", write, "Content-Type", "multipart/mixed; boundary=b")
		require.Equal(t, http.StatusForbidden, a.status, "%s: %s", name, a.body)
		require.Contains(t, a.body, `"InsufficientAccountPermissions"`, name)
	}
	require.Len(t, listed(t, sdkTable(t, c, ""), "PartitionKey eq 'large'", 1000), 8)
}
