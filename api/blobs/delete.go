package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

// unbuiltVersions refuses the parameters that name a snapshot, a version or a
// soft-deleted blob.
func (c *call) unbuiltVersions() error {
	for _, name := range [...]string{"snapshot", "versionid", "deletetype"} {
		if c.r.Query.Has(name) {
			return storageerr.NotImplemented
		}
	}
	return nil
}

// deleteBlob is Delete Blob (protocol/blob.md B26).
func (c *call) deleteBlob() error {
	h := c.r.HTTP.Header
	if err := c.unbuiltVersions(); err != nil {
		return err
	}
	if err := refuse(h, unbuiltOnWrite); err != nil {
		return err
	}
	switch snapshots := h.Get("X-Ms-Delete-Snapshots"); snapshots {
	case "", "include": // There are none.
	case "only":
		return storageerr.NotImplemented
	default:
		return badHeader("X-Ms-Delete-Snapshots", snapshots)
	}
	del := &blobs.DeleteBlob{Uncommitted: c.r.Version >= protocol.Version20130815}
	var err error
	if del.Guard, err = parseGuard(h); err != nil {
		return err
	}
	if del.Name, err = c.name(); err != nil {
		return err
	}
	if err := c.commit(del, &del.Command); err != nil {
		return err
	}
	if c.r.Version >= protocol.Version20170729 {
		c.w.Header()["X-Ms-Delete-Type-Permanent"] = []string{"true"}
	}
	c.answerEmpty(http.StatusAccepted)
	return nil
}
