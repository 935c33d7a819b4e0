package primary

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/queues"
	"antipode/services/tables"
	"antipode/stamp/ranges"
)

func batch(t *testing.T, ops ...tables.Op) *tables.Batch {
	b := &tables.Batch{}
	for i, op := range ops {
		require.NoError(t, b.Add(&tables.Write{Op: op, RK: string(rune('a' + i))}))
	}
	return b
}

// R2: writes that only delete are taken while the disk is nearly full, and no other ones: the deletions of entities,
// of blobs and their dead rows, of messages, of tables and containers, the clearing of a queue, and the closing of a
// generation (table).
//
// Capability: Queues: Rows of queues elsewhere.
// Capability: Storage on a node: A disk that is nearly full.
func TestR2Deletions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		w       services.Write
		deletes bool
	}{
		"delete entity":             {&tables.Write{Op: tables.Delete}, true},
		"insert entity":             {&tables.Write{Op: tables.Insert}, false},
		"merge entity":              {&tables.Write{Op: tables.Merge}, false},
		"batch of deletions":        {batch(t, tables.Delete, tables.Delete), true},
		"batch with an update":      {batch(t, tables.Delete, tables.Update), false},
		"delete blob":               {&blobs.DeleteBlob{}, true},
		"drop dead blocks":          {&blobs.DropDead{}, true},
		"put blob":                  {&blobs.PutBlob{}, false},
		"put block":                 {&blobs.PutBlock{}, false},
		"put block list":            {&blobs.PutBlockList{}, false},
		"append block":              {&blobs.AppendBlock{}, false},
		"seal":                      {&blobs.Seal{}, false},
		"delete message":            {&queues.Delete{}, true},
		"collect messages":          {&queues.Collect{}, true},
		"put message":               {&queues.Put{}, false},
		"get messages":              {&queues.Get{}, false},
		"update message":            {&queues.Update{}, false},
		"add subqueue":              {&queues.Open{}, false},
		"add subqueue to clear":     {&queues.Open{Clears: true}, true},
		"change subqueues":          {&queues.ChangeDictionary{}, false},
		"change subqueues to clear": {&queues.ChangeDictionary{Clears: true}, true},
		"close subqueue":            {&queues.SetState{To: queues.StateToBeDeleted}, true},
		"drain subqueue":            {&queues.SetState{To: queues.StateAllExceptPut}, false},
		"delete table":              {&catalog.Delete{}, true},
		"delete container":          {&blobs.DeleteContainer{}, true},
		"create table":              {&catalog.Create{}, false},
		"set metadata of container": {&blobs.SetContainerMetadata{}, false},
	} {
		_, deletes := commandOf(c.w).(ranges.Deletion)
		require.Equal(t, c.deletes, deletes, name)
	}
	var _ ranges.Deletion = closeGeneration{}
}
