package tables

import (
	"errors"
	"net/http"

	"antipode/api/operation"
	"antipode/api/tables/filter"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/services/tables"
)

// permissions are the letters of a policy of a table (protocol/table.md 9.3).
const permissions = "raud"

// byteOrderMark begins the answer to Get Table ACL.
const byteOrderMark = "\xef\xbb\xbf"

// permitted refuses a request of a batch that the signature of the batch does not permit (protocol/table.md 13.1).
func (b *batch) permitted(in *input, from source) error {
	if !b.r.Access.OfTable(in.res.Table) {
		return storageerr.AuthenticationFailed.With("AuthenticationErrorDetail", "The signature is for another table.")
	}
	return in.row.Permitted(b.r.Access, from.header, from.query)
}

// reached refuses a write of an entity outside of the keys that the signature of the request reaches.
func (c *call) reached(pk, rk string) error {
	if c.reaches(pk, rk) {
		return nil
	}
	return storageerr.NotAuthorized
}

// reaches reports whether the signature of the request is good for an entity.
func (c *call) reaches(pk, rk string) bool {
	return c.r.Access == nil || c.r.Access.Keys == nil || reachOf(c.r.Access.Keys).Contains(pk, rk)
}

// reachedByPath is reached for a write that names its entity in the path, before its body is read.
func (c *call) reachedByPath() error {
	if c.in.row.On != operation.Entity || c.in.row.Effect == operation.Reads {
		return nil
	}
	return c.reached(c.in.res.PK, c.in.res.RK)
}

// allowed is the keys that the signature of the request reaches.
func (c *call) allowed() filter.Keys {
	if c.r.Access == nil || c.r.Access.Keys == nil {
		return filter.All()
	}
	return reachOf(c.r.Access.Keys)
}

// reachOf is the keys that a range of a signature reaches.
func reachOf(k *tables.KeyRange) filter.Keys {
	return filter.Between(
		filter.Edge{PK: k.FromPK, RK: k.FromRK, HasPK: true, HasRK: true},
		filter.Edge{PK: k.ToPK, RK: k.ToRK, HasPK: !k.Open, HasRK: k.ToRK != ""})
}

// getACL is Get Table ACL (protocol/table.md 9.3), GET and HEAD.
func (c *call) getACL() (answer, error) {
	return answer{
		status: http.StatusOK, contentType: "application/xml",
		body: wire.AppendPolicies([]byte(byteOrderMark), c.container.Policies),
	}, nil
}

// decodeACL decodes the policies that replace those of the table. Whatever is wrong with them is wrong with the document.
func (c *call) decodeACL(body []byte) (err error) {
	c.policies, err = wire.ParsePolicies(body, permissions)
	if errors.Is(err, storageerr.InvalidXMLNodeValue) || errors.Is(err, storageerr.MissingXMLNode) {
		return storageerr.InvalidXMLDocument
	}
	return err
}

// setACL is Set Table ACL (protocol/table.md 9.3).
func (c *call) setACL() (answer, error) {
	err := c.Writer.Write(c.ctx, &catalog.SetPolicies{
		Service: geo.Table, Account: c.r.Account.Name, Name: c.in.res.Table, Policies: c.policies,
	})
	if errors.Is(err, storageerr.ResourceNotFound) {
		err = storageerr.TableNotFound
	}
	return answer{status: http.StatusNoContent}, err
}
