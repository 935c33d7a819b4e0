package blobs

import "net/http"

// accountInformation is Get Account Information (protocol/blob.md S5): what the account is, by whatever path. What the path
// names need not exist.
func (c *call) accountInformation() error {
	c.writeHead(&head{status: http.StatusOK, sku: c.r.Account.Redundancy.SKU()})
	return nil
}
