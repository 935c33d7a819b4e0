package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// contextFor is the test's context with a deadline.
func contextFor(t *testing.T, within time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), within)
}

func tableService(t *testing.T, p *devproc.Process, st style, secondary bool) *aztables.ServiceClient {
	t.Helper()
	cred, err := aztables.NewSharedKeyCredential(string(rest.DevAccount), rest.DevKey)
	require.NoError(t, err)
	svc, err := aztables.NewServiceClientWithSharedKey(
		endpoint(p, st, geo.Table, secondary), cred, &aztables.ClientOptions{ClientOptions: clientOptions(p)})
	require.NoError(t, err)
	return svc
}

// entity marshals an entity with one property of each type. The SDK's own
// aztables.EDMEntity would double the quotes in the keys of the body, so that
// its GetEntity would not find them again.
func entity(t *testing.T, pk, rk, text string) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"PartitionKey": pk, "RowKey": rk, "Text": text, "Yes": true, "Small": -7, "Half": 0.5,
		"Big@odata.type": "Edm.Int64", "Big": "9007199254740993",
		"When@odata.type": "Edm.DateTime", "When": "2009-04-30T20:45:13Z",
		"ID@odata.type": "Edm.Guid", "ID": "c9da6455-213d-42c9-9a79-3e9149a57833",
		"Raw@odata.type": "Edm.Binary", "Raw": "AAH/",
	})
	require.NoError(t, err)
	return b
}

// properties decodes an entity without what differs by endpoint.
func properties(t *testing.T, b []byte) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	delete(m, "odata.metadata")
	return m
}

func testTables(t *testing.T, p *devproc.Process, st style) {
	ctx, cancel := contextFor(t, 2*time.Minute)
	defer cancel()
	svc, second := tableService(t, p, st, false), tableService(t, p, st, true)
	name := "Sdk" + string(st)
	_, err := svc.CreateTable(ctx, name, nil)
	require.NoError(t, err)
	_, err = svc.CreateTable(ctx, name, nil)
	requireCode(t, err, http.StatusConflict, "TableAlreadyExists")

	table := svc.NewClient(name)
	testEntity(ctx, t, table)
	testQuery(ctx, t, table)
	testTableSecondary(ctx, t, p, st, table, second.NewClient(name))
	testTransaction(ctx, t, table, second.NewClient(name))

	stats, err := second.GetStatistics(ctx, nil)
	require.NoError(t, err)
	require.NotNil(t, stats.GeoReplication)
	requirePlausible(t, string(*stats.GeoReplication.Status), stats.GeoReplication.LastSyncTime)

	_, err = svc.DeleteTable(ctx, name, nil)
	require.NoError(t, err)
	_, err = table.GetEntity(ctx, "p", "kept", nil)
	requireCode(t, err, http.StatusNotFound, "TableNotFound")
	_, err = svc.DeleteTable(ctx, name, nil)
	requireCode(t, err, http.StatusNotFound, "ResourceNotFound")
}

// testEntity walks one entity through its life, with the refusals on the way.
func testEntity(ctx context.Context, t *testing.T, table *aztables.Client) {
	const pk, rk = "O'Hara & søn", "r 1+%;"
	added, err := table.AddEntity(ctx, entity(t, pk, rk, "one"), nil)
	require.NoError(t, err)
	_, err = table.AddEntity(ctx, entity(t, pk, rk, "again"), nil)
	requireCode(t, err, http.StatusConflict, "EntityAlreadyExists")
	_, err = table.GetEntity(ctx, pk, "no such row", nil)
	requireCode(t, err, http.StatusNotFound, "ResourceNotFound")

	got, err := table.GetEntity(ctx, pk, rk, nil)
	require.NoError(t, err)
	require.Equal(t, added.ETag, got.ETag)
	var e aztables.EDMEntity
	require.NoError(t, json.Unmarshal(got.Value, &e))
	require.Equal(t, pk, e.PartitionKey)
	require.Equal(t, rk, e.RowKey)
	require.Equal(t, "one", e.Properties["Text"])
	require.Equal(t, aztables.EDMInt64(9007199254740993), e.Properties["Big"])
	require.Equal(t, aztables.EDMBinary("\x00\x01\xff"), e.Properties["Raw"])

	update := func(mode aztables.UpdateMode, match azcore.ETag, body string) (azcore.ETag, error) {
		b := fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,%s}`, pk, rk, body)
		r, err := table.UpdateEntity(ctx, b, &aztables.UpdateEntityOptions{IfMatch: &match, UpdateMode: mode})
		return r.ETag, err
	}
	merged, err := update(aztables.UpdateModeMerge, added.ETag, `"Text":"two","Extra":1`)
	require.NoError(t, err)
	require.NotEqual(t, added.ETag, merged)
	_, err = update(aztables.UpdateModeMerge, added.ETag, `"Text":"late"`)
	requireCode(t, err, http.StatusPreconditionFailed, "UpdateConditionNotSatisfied")
	got, err = table.GetEntity(ctx, pk, rk, nil)
	require.NoError(t, err)
	m := properties(t, got.Value)
	require.Equal(t, "two", m["Text"])
	require.Equal(t, true, m["Yes"], "a merge leaves what it does not name")
	require.InDelta(t, 1, m["Extra"], 0)

	replaced, err := update(aztables.UpdateModeReplace, azcore.ETagAny, `"Text":"three"`)
	require.NoError(t, err)
	got, err = table.GetEntity(ctx, pk, rk, nil)
	require.NoError(t, err)
	require.Equal(t, replaced, got.ETag)
	require.NotContains(t, properties(t, got.Value), "Yes", "a replace drops what it does not name")

	_, err = table.DeleteEntity(ctx, pk, rk, &aztables.DeleteEntityOptions{IfMatch: &merged})
	requireCode(t, err, http.StatusPreconditionFailed, "UpdateConditionNotSatisfied")
	_, err = table.DeleteEntity(ctx, pk, rk, &aztables.DeleteEntityOptions{IfMatch: &replaced})
	require.NoError(t, err)
	_, err = table.GetEntity(ctx, pk, rk, nil)
	requireCode(t, err, http.StatusNotFound, "ResourceNotFound")
	_, err = table.UpsertEntity(ctx, entity(t, pk, rk, "four"), nil)
	require.NoError(t, err)
}

// testQuery reads a partition in pages, and a range of row keys.
func testQuery(ctx context.Context, t *testing.T, table *aztables.Client) {
	const rows = 25
	for i := range rows {
		_, err := table.AddEntity(ctx, entity(t, "query", fmt.Sprintf("%03d", i), "x"), nil)
		require.NoError(t, err)
		_, err = table.AddEntity(ctx, entity(t, "query-not", fmt.Sprintf("%03d", i), "x"), nil)
		require.NoError(t, err)
	}
	list := func(filter string) (keys []string, pages int) {
		pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter, Top: to.Ptr(int32(10))})
		for pager.More() {
			page, err := pager.NextPage(ctx)
			require.NoError(t, err)
			pages++
			for _, b := range page.Entities {
				keys = append(keys, properties(t, b)["RowKey"].(string))
			}
		}
		return keys, pages
	}
	keys, pages := list("PartitionKey eq 'query'")
	require.Len(t, keys, rows)
	require.IsIncreasing(t, keys)
	require.GreaterOrEqual(t, pages, 3)
	keys, _ = list("PartitionKey eq 'query' and RowKey ge '005' and RowKey lt '018'")
	require.Len(t, keys, 13)
	require.Equal(t, "005", keys[0])
}

// testTableSecondary compares one entity at both locations, as the SDK sees it
// and byte for byte.
func testTableSecondary(ctx context.Context, t *testing.T, p *devproc.Process, st style, table, second *aztables.Client) {
	added, err := table.AddEntity(ctx, entity(t, "p", "kept", "geo"), nil)
	require.NoError(t, err)
	eventually(t, arriveWait, "entity at -secondary", func(ctx context.Context) error {
		_, err := second.GetEntity(ctx, "p", "kept", nil)
		return err
	})
	here, err := table.GetEntity(ctx, "p", "kept", nil)
	require.NoError(t, err)
	there, err := second.GetEntity(ctx, "p", "kept", nil)
	require.NoError(t, err)
	require.Equal(t, added.ETag, there.ETag)
	require.Equal(t, properties(t, here.Value), properties(t, there.Value))

	_, a, err := p.Client(0, false).GetEntity(ctx, "Sdk"+string(st), "p", "kept")
	require.NoError(t, err)
	_, b, err := p.Client(0, true).GetEntity(ctx, "Sdk"+string(st), "p", "kept")
	require.NoError(t, err)
	require.Equal(t, string(a.Body), string(b.Body))
}

// testTransaction writes 25 entities in one transaction, which -secondary then has all,
// and continues a query of them there with the tokens of its first page. A transaction
// of which one write fails leaves nothing.
func testTransaction(ctx context.Context, t *testing.T, table, second *aztables.Client) {
	const rows = 25
	var actions []aztables.TransactionAction
	for i := range rows {
		actions = append(actions, aztables.TransactionAction{
			ActionType: aztables.TransactionTypeAdd, Entity: entity(t, "batch", fmt.Sprintf("%03d", i), "x"),
		})
	}
	_, err := table.SubmitTransaction(ctx, actions, nil)
	require.NoError(t, err)
	lost := aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: entity(t, "batch", "lost", "x")}
	_, err = table.SubmitTransaction(ctx, []aztables.TransactionAction{lost, actions[0]}, nil)
	require.ErrorContains(t, err, "EntityAlreadyExists") // The client looks for no code inside of a 202.
	require.ErrorContains(t, err, "1:The specified entity already exists.")
	_, err = table.GetEntity(ctx, "batch", "lost", nil)
	requireCode(t, err, http.StatusNotFound, "ResourceNotFound")
	_, err = second.SubmitTransaction(ctx, []aztables.TransactionAction{lost}, nil)
	requireCode(t, err, http.StatusForbidden, "InsufficientAccountPermissions")
	eventually(t, arriveWait, "transaction at -secondary", func(ctx context.Context) error {
		_, err := second.GetEntity(ctx, "batch", "000", nil)
		return err
	})

	options := aztables.ListEntitiesOptions{Filter: to.Ptr("PartitionKey eq 'batch'"), Top: to.Ptr(int32(10))}
	page, err := table.NewListEntitiesPager(&options).NextPage(ctx)
	require.NoError(t, err)
	require.Len(t, page.Entities, 10)
	options.NextPartitionKey, options.NextRowKey = page.NextPartitionKey, page.NextRowKey
	for _, c := range []*aztables.Client{table, second} {
		next := 10
		pager := c.NewListEntitiesPager(&options)
		for pager.More() {
			page, err := pager.NextPage(ctx)
			require.NoError(t, err)
			for _, b := range page.Entities {
				require.Equal(t, fmt.Sprintf("%03d", next), properties(t, b)["RowKey"])
				next++
			}
		}
		require.Equal(t, rows, next)
	}
}
