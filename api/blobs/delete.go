package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

// checkSnapshots reads what Delete Blob is to do with snapshots.
func (c *call) checkSnapshots() error {
	switch snapshots := c.r.Header("X-Ms-Delete-Snapshots"); snapshots {
	case "", "include": // There are none.
		return nil
	case "only":
		return storageerr.NotImplemented
	default:
		return badHeader("X-Ms-Delete-Snapshots", snapshots)
	}
}

// deleteBlob is Delete Blob (protocol/blob.md B26).
func (c *call) deleteBlob() error {
	of, err := c.command()
	if err != nil {
		return err
	}
	del := &blobs.DeleteBlob{Command: of, Uncommitted: c.r.Version >= protocol.Version20130815}
	if err := c.commit(del, &del.Command); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusAccepted, deleted: true})
	return nil
}
