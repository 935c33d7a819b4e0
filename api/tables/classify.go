package tables

import (
	"antipode/api/odata"
	operations "antipode/api/operation"
	"antipode/api/protocol"
)

// Classify names the operation that Serve would run for a request, or operation.Unknown
// where it would refuse it.
func Classify(r *protocol.Request) string {
	c := &call{r: r}
	var err error
	if c.res, err = odata.ParsePath(r.Resource); err != nil {
		return operations.Unknown
	}
	name, run := c.route()
	if run == nil {
		return operations.Unknown // Named for metrics; the verb does not fit.
	}
	return name
}
