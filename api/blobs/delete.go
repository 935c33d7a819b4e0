package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/services/blobs"
)

// deleteBlob is Delete Blob (protocol/blob.md B26), of a blob or of one snapshot.
func (c *call) deleteBlob(with blobs.WithSnapshots) error {
	of, err := c.command()
	if err != nil {
		return err
	}
	if at := c.in.snapshot; at != 0 {
		del := &blobs.DeleteSnapshot{Command: of, Snapshot: at}
		err = c.commit(del, &del.Command)
	} else {
		del := &blobs.DeleteBlob{Command: of, Snapshots: with, Uncommitted: c.r.Version >= protocol.Version20130815}
		err = c.commit(del, &del.Command)
	}
	if err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusAccepted, deleted: true})
	return nil
}
