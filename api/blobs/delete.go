package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/services/blobs"
)

// deletion is what a Delete Blob asks for.
type deletion struct {
	snapshots blobs.WithSnapshots
	// tier are conditions on the change of the tier; nil for none.
	tier blobs.Conditions
}

// parseDelete reads what Delete Blob has alone.
func (c *call) parseDelete() (d deletion, err error) {
	if d.snapshots, err = c.parseWithSnapshots(); err != nil {
		return d, err
	}
	d.tier, err = c.parseTierConditions()
	return d, err
}

// deleteBlob is Delete Blob (protocol/blob.md B26), of a blob or of one snapshot.
func (c *call) deleteBlob(asked deletion) error {
	of, err := c.command()
	if err != nil {
		return err
	}
	if at := c.in.snapshot; at != 0 {
		del := &blobs.DeleteSnapshot{Command: of, Snapshot: at, Tier: asked.tier}
		err = c.commit(del, &del.Command)
	} else {
		del := &blobs.DeleteBlob{
			Command: of, Snapshots: asked.snapshots, Uncommitted: c.r.Version >= protocol.Version20130815, Tier: asked.tier,
		}
		err = c.commit(del, &del.Command)
	}
	if err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusAccepted, deleted: true})
	return nil
}
