package blobs

import (
	"net/http"

	"antipode/services/blobs"
)

// blobMetadata is Get Blob Metadata (protocol/blob.md B3), GET and HEAD.
func (c *call) blobMetadata() error {
	b, err := c.lookup(nil)
	if err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusOK, modified: b.Modified, metadata: b.Metadata})
	return nil
}

// setBlobMetadata is Set Blob Metadata (protocol/blob.md B4).
func (c *call) setBlobMetadata() error {
	of, err := c.command()
	if err != nil {
		return err
	}
	set := &blobs.SetMetadata{Command: of, Metadata: c.in.metadata}
	if err := c.commit(set, &set.Command); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusOK, modified: set.Modified, written: true})
	return nil
}

// checkNoPages refuses what Set Blob Properties does with page blobs alone.
func (c *call) checkNoPages() error {
	return c.refusePages("X-Ms-Blob-Content-Length", "X-Ms-Sequence-Number-Action", "X-Ms-Blob-Sequence-Number")
}

// setBlobProperties is Set Blob Properties (protocol/blob.md B5) of a block blob: all six
// properties together, those that were not sent cleared.
func (c *call) setBlobProperties() error {
	of, err := c.command()
	if err != nil {
		return err
	}
	set := &blobs.SetProperties{Command: of, Properties: c.in.properties, MD5: c.in.md5}
	if err := c.commit(set, &set.Command); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusOK, modified: set.Modified})
	return nil
}
