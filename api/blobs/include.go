package blobs

import (
	"slices"
	"strings"

	"antipode/api/protocol"
	"antipode/api/wire"
)

// includes is what a listing is asked to show besides.
type includes []string

// parseInclude reads the include parameters: comma-separated, perhaps repeated, empty
// items ignored. known maps an item to the version it came with; another one, or one
// that is newer than the request, is refused.
func (c *call) parseInclude(known map[string]protocol.Version) (includes, error) {
	var out includes
	for _, p := range c.r.Query {
		if p.Name != "include" {
			continue
		}
		for item := range strings.SplitSeq(p.Value, ",") {
			item = lower(strings.TrimSpace(item))
			since, found := known[item]
			switch {
			case item == "":
			case !found || c.r.Version < since:
				return nil, wire.BadParameter("include", item, "The value is not one of the operation's.")
			default:
				out = append(out, item)
			}
		}
	}
	return out, nil
}

func (in includes) has(item string) bool { return slices.Contains(in, item) }
