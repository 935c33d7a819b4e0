package queues

import (
	"errors"
	"net/http"
	"strconv"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/catalog"
)

// permissions are the letters of a policy of a queue (protocol/queue.md 7.5).
const permissions = "raup"

// metadata reads the metadata of the request, whose names are identifiers since 2009-09-19 (protocol/queue.md 2).
func (c *call) metadata() ([]catalog.Pair, error) {
	return wire.ParseMetadata(c.r.HTTP.Header, c.r.Version >= protocol.Version20090919)
}

// done answers a write that has no document.
func (c *call) done(status int) error {
	c.w.WriteHeader(status)
	return nil
}

// createQueue is Create Queue (protocol/queue.md 7.1).
func (c *call) createQueue() error {
	metadata, err := c.metadata()
	if err != nil {
		return err
	}
	err = c.o.Writer.Write(c.ctx, &catalog.Create{
		Service: geo.Queue, Account: c.r.Account.Name, Name: c.path.queue, NameRest: c.o.NameRest, Metadata: metadata,
	})
	switch {
	case errors.Is(err, catalog.ErrExistsAlike):
		return c.done(http.StatusNoContent)
	case err != nil:
		return err
	}
	return c.done(http.StatusCreated)
}

// deleteQueue is Delete Queue (protocol/queue.md 7.2): answered after the ranges with its messages committed that
// the generation takes no more changes (R8).
func (c *call) deleteQueue() error {
	del := &catalog.Delete{Service: geo.Queue, Account: c.r.Account.Name, Name: c.path.queue}
	if err := c.o.Writer.Write(c.ctx, del); err != nil {
		return err
	}
	err := c.o.Writer.CloseGeneration(c.ctx, geo.Queue, c.r.Account.Name, c.path.queue, del.Deleted.Generation())
	if err != nil {
		return err
	}
	return c.done(http.StatusNoContent)
}

// getMetadata is Get Queue Metadata (protocol/queue.md 7.3), GET and HEAD.
func (c *call) getMetadata() error {
	container, err := c.container()
	if err != nil {
		return err
	}
	n, err := c.o.Messages.Count(c.ctx, c.reader(), c.queueOf(container))
	if err != nil {
		return err
	}
	h := c.w.Header()
	wire.SetMetadata(h, container.Metadata)
	h["X-Ms-Approximate-Messages-Count"] = []string{strconv.FormatUint(n, 10)}
	h["Cache-Control"] = []string{"no-cache"}
	h["Content-Length"] = []string{"0"}
	return c.done(http.StatusOK)
}

// setMetadata is Set Queue Metadata (protocol/queue.md 7.4).
func (c *call) setMetadata() error {
	metadata, err := c.metadata()
	if err != nil {
		return err
	}
	set := &catalog.SetMetadata{Service: geo.Queue, Account: c.r.Account.Name, Name: c.path.queue, Metadata: metadata}
	if err := c.o.Writer.Write(c.ctx, set); err != nil {
		return err
	}
	return c.done(http.StatusNoContent)
}

// getACL is Get Queue ACL (protocol/queue.md 7.5), GET and HEAD.
func (c *call) getACL() error {
	container, err := c.container()
	if err != nil {
		return err
	}
	return c.document(wire.AppendPolicies(nil, container.Policies))
}

// setACL is Set Queue ACL (protocol/queue.md 7.5).
func (c *call) setACL() error {
	if _, err := c.container(); err != nil {
		return err
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	policies, err := wire.ParsePolicies(body, permissions)
	if err != nil {
		return err
	}
	set := &catalog.SetPolicies{Service: geo.Queue, Account: c.r.Account.Name, Name: c.path.queue, Policies: policies}
	if err := c.o.Writer.Write(c.ctx, set); err != nil {
		return err
	}
	return c.done(http.StatusNoContent)
}

// document answers with a document that is complete.
func (c *call) document(b []byte) error {
	c.documentHeaders()
	c.w.Header()["Content-Length"] = []string{strconv.Itoa(len(b))}
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(b) // The client is gone when this fails.
	return nil
}

func (c *call) documentHeaders() {
	h := c.w.Header()
	h["Cache-Control"] = []string{"no-cache"}
	h["Content-Type"] = []string{"application/xml"}
}
