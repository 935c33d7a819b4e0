package blobs

import (
	"net/http"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/lease"
	"antipode/services/storageerr"
)

// checkAccess reads who may read the container without a signature.
func (c *call) checkAccess() error {
	if err := c.refuse(unbuiltOnCreate); err != nil {
		return err
	}
	switch access := c.r.Header("X-Ms-Blob-Public-Access"); access {
	case "", "blob", "container":
		return nil
	default:
		return badHeader("X-Ms-Blob-Public-Access", access)
	}
}

// refusePublic refuses access without a signature, which no account has. It is said behind all that is wrong with the
// request itself.
func (c *call) refusePublic() error {
	if c.r.Header("X-Ms-Blob-Public-Access") != "" {
		return storageerr.PublicAccessNotPermitted
	}
	return nil
}

// createContainer is Create Container (protocol/blob.md C1).
func (c *call) createContainer() error {
	if err := c.refusePublic(); err != nil {
		return err
	}
	create := &catalog.Create{
		Service: geo.Blob, Account: c.r.Account.Name, Name: c.res.container, NameRest: c.o.NameRest,
		Metadata: c.in.metadata,
	}
	if err := c.o.Writer.Write(c.ctx, create); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusCreated, modified: create.Created.Modified})
	return nil
}

// containerProperties is Get Container Properties (protocol/blob.md C2), GET and HEAD.
func (c *call) containerProperties() error {
	container, err := c.lookupContainer()
	if err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusOK, modified: container.Modified, metadata: container.Metadata, container: container})
	return nil
}

// containerMetadata is Get Container Metadata (protocol/blob.md C3), GET and HEAD.
func (c *call) containerMetadata() error {
	container, err := c.lookupContainer()
	if err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusOK, modified: container.Modified, metadata: container.Metadata})
	return nil
}

// lookupContainer reads the container under the request's guard.
func (c *call) lookupContainer() (*catalog.Container, error) {
	container, err := c.container()
	if err != nil {
		return nil, err
	}
	return container, c.in.guard.Check(blobs.State{Modified: container.Modified, Lease: container.Lease}, c.now(), lease.OfContainer())
}

// setContainerMetadata is Set Container Metadata (protocol/blob.md C4).
func (c *call) setContainerMetadata() error {
	set := &blobs.SetContainerMetadata{
		SetMetadata: catalog.SetMetadata{Service: geo.Blob, Account: c.r.Account.Name, Name: c.res.container, Metadata: c.in.metadata},
		Guard:       c.in.guard,
	}
	if err := c.o.Writer.Write(c.ctx, set); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusOK, modified: set.Modified})
	return nil
}

// deleteContainer is Delete Container (protocol/blob.md C7): answered after the blob
// range committed that the generation takes no more changes (R8).
func (c *call) deleteContainer() error {
	del := &blobs.DeleteContainer{
		Delete: catalog.Delete{Service: geo.Blob, Account: c.r.Account.Name, Name: c.res.container},
		Guard:  c.in.guard,
	}
	if err := c.o.Writer.Write(c.ctx, del); err != nil {
		return err
	}
	g := del.Deleted.Generation()
	if err := c.o.Writer.CloseGeneration(c.ctx, geo.Blob, c.r.Account.Name, c.res.container, g); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusAccepted})
	return nil
}
