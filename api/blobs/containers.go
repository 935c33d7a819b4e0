package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// createContainer is Create Container (protocol/blob.md C1).
func (c *call) createContainer() error {
	h := c.r.HTTP.Header
	if err := requireLength(c.r.HTTP); err != nil {
		return err
	}
	if err := c.refuseConditions(); err != nil {
		return err
	}
	if err := refuse(h, []string{"X-Ms-Default-Encryption-Scope", "X-Ms-Deny-Encryption-Scope-Override"}); err != nil {
		return err
	}
	switch access := h.Get("X-Ms-Blob-Public-Access"); access {
	case "":
	case "blob", "container":
		return storageerr.PublicAccessNotPermitted
	default:
		return badHeader("X-Ms-Blob-Public-Access", access)
	}
	metadata, err := wire.ParseMetadata(h, c.r.Version >= protocol.Version20090919)
	if err != nil {
		return err
	}
	create := &catalog.Create{
		Service: geo.Blob, Account: c.r.Account.Name, Name: c.res.container, Epoch: c.r.Account.Epoch, NameRest: c.o.NameRest,
		Metadata: metadata,
	}
	if err := c.o.Writer.Write(c.ctx, create); err != nil {
		return err
	}
	setTag(c.w.Header(), create.Created.Modified)
	c.answerEmpty(http.StatusCreated)
	return nil
}

// containerProperties is Get Container Properties (protocol/blob.md C2), GET and HEAD.
func (c *call) containerProperties() error {
	if err := c.describeContainer(); err != nil {
		return err
	}
	h := c.w.Header()
	setLease(h, c.r.Version)
	if c.r.Version >= version20171109 {
		h["X-Ms-Has-Immutability-Policy"] = []string{"false"}
		h["X-Ms-Has-Legal-Hold"] = []string{"false"}
		h["X-Ms-Immutable-Storage-With-Versioning-Enabled"] = []string{"false"}
	}
	c.answerEmpty(http.StatusOK)
	return nil
}

// containerMetadata is Get Container Metadata (protocol/blob.md C3), GET and HEAD.
func (c *call) containerMetadata() error {
	if err := c.describeContainer(); err != nil {
		return err
	}
	c.answerEmpty(http.StatusOK)
	return nil
}

// describeContainer writes the tag and the metadata of the container.
func (c *call) describeContainer() error {
	leaseSent, err := parseLeaseSent(c.r.HTTP.Header)
	if err != nil {
		return err
	}
	container, err := c.container()
	if err != nil {
		return err
	}
	if leaseSent {
		return storageerr.LeaseNotPresentOnContainer
	}
	setTag(c.w.Header(), container.Modified)
	wire.SetMetadata(c.w.Header(), container.Metadata)
	return nil
}

// setContainerMetadata is Set Container Metadata (protocol/blob.md C4). Of the conditions
// it takes If-Modified-Since alone (16.1).
func (c *call) setContainerMetadata() error {
	h := c.r.HTTP.Header
	if err := requireLength(c.r.HTTP); err != nil {
		return err
	}
	if err := c.refuseConditions(); err != nil {
		return err
	}
	guard, err := parseGuard(h)
	if err != nil {
		return err
	}
	metadata, err := wire.ParseMetadata(h, c.r.Version >= protocol.Version20090919)
	if err != nil {
		return err
	}
	set := &blobs.SetContainerMetadata{
		SetMetadata: catalog.SetMetadata{Service: geo.Blob, Account: c.r.Account.Name, Name: c.res.container, Metadata: metadata},
		Guard:       guard,
	}
	if err := c.o.Writer.Write(c.ctx, set); err != nil {
		return err
	}
	setTag(c.w.Header(), set.Modified)
	c.answerEmpty(http.StatusOK)
	return nil
}

// deleteContainer is Delete Container (protocol/blob.md C7): answered after the blob
// range committed that the generation takes no more changes (R8).
func (c *call) deleteContainer() error {
	if err := c.refuseConditions(); err != nil {
		return err
	}
	guard, err := parseGuard(c.r.HTTP.Header)
	if err != nil {
		return err
	}
	del := &blobs.DeleteContainer{
		Delete: catalog.Delete{Service: geo.Blob, Account: c.r.Account.Name, Name: c.res.container},
		Guard:  guard,
	}
	if err := c.o.Writer.Write(c.ctx, del); err != nil {
		return err
	}
	g := del.Deleted.Generation()
	if err := c.o.Writer.CloseGeneration(c.ctx, geo.Blob, c.r.Account.Name, c.res.container, g); err != nil {
		return err
	}
	c.answerEmpty(http.StatusAccepted)
	return nil
}
