package blobs

import (
	"net/http"
	"time"

	"antipode/api/operation"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// snapshotLayout is the form of the time that names a snapshot (protocol/blob.md 1.3).
const snapshotLayout = "2006-01-02T15:04:05.0000000Z"

// snapshotText names a snapshot to clients; empty for none.
func snapshotText(at geo.Timestamp) string {
	if at == 0 {
		return ""
	}
	return at.Time().UTC().Format(snapshotLayout)
}

// readSnapshot reads the parameter that addresses a snapshot of the blob.
func (c *call) readSnapshot() error {
	text, sent := c.r.Query.Lookup("snapshot")
	if !sent {
		return nil
	}
	t, err := time.Parse(snapshotLayout, text)
	if c.in.snapshot = geo.TimestampOf(t); err != nil || snapshotText(c.in.snapshot) != text {
		return wire.BadParameter("snapshot", text, "The value is not a time of 7 fraction digits.")
	}
	return nil
}

// find reads the blob, or the snapshot of it, that the request addresses.
func (c *call) find(get kv.Getter, n blobs.Name) (blobs.Blob, error) {
	if c.in.snapshot != 0 {
		return blobs.GetSnapshot(get, n, c.in.snapshot)
	}
	return blobs.GetBlob(get, n)
}

// snapshotBlob is Snapshot Blob (protocol/blob.md B21).
func (c *call) snapshotBlob() error {
	of, err := c.command()
	if err != nil {
		return err
	}
	w := &blobs.SnapshotBlob{Command: of, Metadata: c.in.metadata}
	if err := c.commit(w, &w.Command); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusCreated, modified: w.Modified, snapshot: snapshotText(w.Snapshot), written: true})
	return nil
}

// parseWithSnapshots reads what Delete Blob is to do with snapshots.
func (c *call) parseWithSnapshots() (blobs.WithSnapshots, error) {
	text := c.r.Header("X-Ms-Delete-Snapshots")
	if text != "" && c.r.Query.Has("snapshot") {
		return 0, wire.BadParameter("snapshot", c.r.Query.Get("snapshot"), "A snapshot has no snapshots.")
	}
	switch text {
	case "":
		return blobs.SnapshotsRefuse, nil
	case "include":
		return blobs.SnapshotsInclude, nil
	case "only":
		return blobs.SnapshotsOnly, nil
	}
	return 0, badHeader("X-Ms-Delete-Snapshots", text)
}

// readVersion reads the parameter that names a snapshot, and refuses it where the operation does not take one, and those that
// name a version or a soft-deleted blob. Nothing can write a snapshot or a version (protocol/blob.md B4).
func (c *call) readVersion() error {
	if c.asked.Takes&operation.Snapshot != 0 {
		if err := c.readSnapshot(); err != nil {
			return err
		}
	} else {
		for _, name := range [...]string{"snapshot", "versionid"} {
			if v, sent := c.r.Query.Lookup(name); sent {
				return wire.BadParameter(name, v, "A snapshot or version cannot be written.")
			}
		}
	}
	if c.r.Query.Has("versionid") || c.r.Query.Has("deletetype") {
		return storageerr.NotImplemented
	}
	return nil
}
