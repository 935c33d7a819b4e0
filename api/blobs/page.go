package blobs

import (
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// pageItemsMax is the default and the cap of maxresults (protocol/blob.md S1, 7.1).
const pageItemsMax = 5000

// pageQuery is what the two listings ask for in the same words.
type pageQuery struct {
	prefix string
	// from is the first name that may be listed; empty for all.
	from  string
	items int
}

// parsePage reads prefix, marker and maxresults.
func (c *call) parsePage() (pageQuery, error) {
	q := pageQuery{prefix: c.r.Query.Get("prefix"), items: pageItemsMax}
	if !utf8.ValidString(q.prefix) {
		return q, badParameter("prefix", q.prefix, "The value is not UTF-8.")
	}
	if text := c.r.Query.Get("marker"); text != "" {
		name, ok := parseMarker(text)
		if !ok {
			return q, badParameter("marker", text, "The value is none that this service gave.")
		}
		q.from = name
	}
	text := c.r.Query.Get("maxresults")
	if text == "" {
		return q, nil
	}
	n, err := strconv.ParseInt(text, 10, 64) // Out of its range it is the nearest number.
	if errors.Is(err, strconv.ErrSyntax) {
		return q, badParameter("maxresults", text, "The value is not a number.")
	}
	if n <= 0 {
		return q, storageerr.OutOfRangeQueryParam.With("QueryParameterName", "maxresults", "QueryParameterValue", text,
			"MinimumAllowed", "1", "MaximumAllowed", strconv.Itoa(pageItemsMax))
	}
	q.items = int(min(n, pageItemsMax))
	return q, nil
}

// markerVersion is the first byte of a marker. It is not durable: a client may keep a
// marker for as long as it lists.
const markerVersion = 1

// newMarker is the marker of the page that begins at name; empty for none. It is
// opaque to clients (protocol/blob.md 7.1), and text that a URL and XML carry as it is.
func newMarker(name string) string {
	if name == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append([]byte{markerVersion}, name...))
}

func parseMarker(text string) (name string, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 2 || b[0] != markerVersion || !utf8.Valid(b[1:]) {
		return "", false
	}
	name = string(b[1:])
	return name, newMarker(name) == text // Base64 skips line ends.
}

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
				return nil, badParameter("include", item, "The value is not one of the operation's.")
			default:
				out = append(out, item)
			}
		}
	}
	return out, nil
}

func (in includes) has(item string) bool { return slices.Contains(in, item) }
