package blobs

import (
	"slices"

	"antipode/api/protocol"
	"antipode/api/wire"
)

// includes is what a listing is asked to show besides.
type includes []string

// parseInclude reads the include parameters. known maps an item to the version it came with;
// another one, or one that is newer than the request, is refused.
func (c *call) parseInclude(known map[string]protocol.Version) (out includes, err error) {
	for item := range c.r.Query.Included() {
		if since, found := known[item]; !found || c.r.Version < since {
			return nil, wire.BadParameter("include", item, "The value is not one of the operation's.")
		}
		out = append(out, item)
	}
	return out, nil
}

func (in includes) has(item string) bool { return slices.Contains(in, item) }
