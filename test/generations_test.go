package test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
)

// generations is the script of the JavaScript clients of all ages.
const generations = "generations.mjs"

// Clients of all ages on one table: each writes an entity with all types, and each reads those of
// all, Atom of 2013 beside JSON of today.
func testGenerations(t *testing.T, p *devproc.Process, dir string) {
	ctx, cancel := contextFor(t, 2*time.Minute)
	defer cancel()
	const name = "Generations"
	writers := []string{"azure-0.6.11", "azure-storage-0.4.5", "azure-storage-2.10.7", "data-tables", "aztables"}
	svc := tableService(t, p, hostStyle, false)
	_, err := svc.CreateTable(ctx, name, nil)
	require.NoError(t, err)
	run := func(step string) {
		runScript(t, p, dir, generations, npmScript{geo.Table, hostStyle}, "STEP="+step, "TABLE="+name, "ROWS="+strconv.Itoa(len(writers)))
	}
	run("write")
	table := svc.NewClient(name)
	written := aztables.EDMEntity{
		Entity: aztables.Entity{PartitionKey: "p", RowKey: "aztables"},
		Properties: map[string]any{
			"Text": " søn <&\"'> \u4e2d\t", "Yes": true, "Small": int32(-7), "Big": aztables.EDMInt64(9007199254740993), "Half": 0.5, "Whole": 3.0,
			"When": aztables.EDMDateTime(time.Date(2009, 4, 30, 20, 45, 13, 5e8, time.UTC)), "Guid": aztables.EDMGUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
			"Raw": aztables.EDMBinary("\x00\x01\xff"),
		},
	}
	body, err := json.Marshal(written)
	require.NoError(t, err)
	_, err = table.AddEntity(ctx, body, nil)
	require.NoError(t, err)
	for _, writer := range writers {
		got, err := table.GetEntity(ctx, "p", writer, nil)
		require.NoError(t, err, writer)
		var e aztables.EDMEntity
		require.NoError(t, json.Unmarshal(got.Value, &e))
		want := written.Properties
		want["Whole"] = int32(3) // What this client makes of the 3.0 that it gets.
		if writer == "azure-storage-0.4.5" {
			want["Whole"] = "3.0" // See the script.
		}
		require.Equal(t, want, e.Properties, writer)
	}
	run("read")
}
