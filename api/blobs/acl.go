package blobs

import (
	"net/http"
	"strings"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
)

// permissions are the letters of a policy of a container, in the order in which they are stored (protocol/blob.md C6).
const permissions = "racwdxyltmeopi"

// containerACL is Get Container ACL (protocol/blob.md C5), GET and HEAD. No container is public.
func (c *call) containerACL() error {
	container, err := c.lookupContainer()
	if err != nil {
		return err
	}
	doc := wire.AppendPolicies(nil, container.Policies)
	c.writeHead(&head{status: http.StatusOK, modified: container.Modified, contentType: "application/xml", length: uint64(len(doc))})
	_, _ = c.w.Write(doc) // The client is gone when this fails.
	return nil
}

// setContainerACL is Set Container ACL (protocol/blob.md C6).
func (c *call) setContainerACL() error {
	if err := c.refusePublic(); err != nil {
		return err
	}
	c.bodyHold = c.inFlight.Hold(c.r)
	defer c.bodyHold.Release()
	body, err := protocol.ReadWhole(c.ctx, c.r, c.bodyHold, c.asked.BodyMax(c.r.Version))
	if err != nil {
		return err
	}
	policies, err := wire.ParsePolicies(body, permissions)
	if err != nil {
		return err
	}
	for i := range policies {
		policies[i].Permission = inOrder(policies[i].Permission)
	}
	set := &blobs.SetContainerPolicies{
		SetPolicies: catalog.SetPolicies{Service: geo.Blob, Account: c.r.Account.Name, Name: c.res.container, Policies: policies},
		Guard:       c.in.guard,
	}
	if err := c.o.Writer.Write(c.ctx, set); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusOK, modified: set.Modified})
	return nil
}

// inOrder has the letters of a policy in their order.
func inOrder(letters string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return -1
	}, permissions)
}
