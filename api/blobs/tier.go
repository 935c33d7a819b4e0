package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

// readTier reads the tier of a block blob; an append blob has none. Those that move blobs by themselves, or are of page
// blobs, are not built.
func (c *call) readTier() error {
	switch text := c.r.Header(headerTier); {
	case text == "":
		c.in.tier = blobs.TierDefault
	case c.in.appends:
		return badHeader(headerTier, text)
	default:
		return c.parseTier(text)
	}
	return nil
}

func (c *call) parseTier(text string) error {
	switch text {
	case "Hot":
		c.in.tier = blobs.TierHot
	case "Cool":
		c.in.tier = blobs.TierCool
	case "Cold":
		c.in.tier = blobs.TierCold
	case "Archive":
		c.in.tier = blobs.TierArchive
	case "Smart", "Premium":
		return storageerr.NotImplemented
	default:
		return badHeader(headerTier, text)
	}
	return nil
}

// parseSetTier reads what Set Blob Tier has alone. high is the priority.
func (c *call) parseSetTier() (high bool, err error) {
	if err := c.checkSince(); err != nil {
		return false, err
	}
	if c.r.Header(headerTier) == "" {
		return false, missing(headerTier)
	}
	return c.parsePriority()
}

// parsePriority reads how urgent a rehydration is.
func (c *call) parsePriority() (high bool, err error) {
	switch text := c.r.Header(headerPriority); {
	case c.r.Version < protocol.Version20190202, text == "", text == "Standard":
		return false, nil
	case text == "High":
		return true, nil
	default:
		return false, badHeader(headerPriority, text)
	}
}

// setBlobTier is Set Blob Tier (protocol/blob.md B28).
func (c *call) setBlobTier(high bool) error {
	of, err := c.command()
	if err != nil {
		return err
	}
	set := &blobs.SetTier{Command: of, Snapshot: c.in.snapshot, Tier: c.in.tier, High: high, Rehydration: c.o.Rehydration}
	if err := c.commit(set, &set.Command); err != nil {
		return err
	}
	a := &head{status: http.StatusOK}
	if set.Accepted {
		a.status = http.StatusAccepted
	}
	c.writeHead(a)
	return nil
}

// parseTierConditions reads the conditions of Delete Blob on the change of the tier; nil for none. The two may stand together.
func (c *call) parseTierConditions() (blobs.Conditions, error) {
	var sent protocol.Conditions
	err := c.under(headerTier+"-", []string{"If-Modified-Since", "If-Unmodified-Since"}, func(h http.Header) (err error) {
		sent, err = protocol.ParseReadConditions(h, c.r.Version)
		return err
	})
	if err != nil || sent.IsZero() {
		return nil, err
	}
	return sent, nil
}

// shownTier is what answers show of a tier. What is empty is not shown.
type shownTier struct{ name, inferred, changed, status, priority string }

// showTier is what is shown of the tier of a blob, which is settled. Append blobs have none.
func showTier(b *blobs.Blob) (s shownTier) {
	if b.Appended != nil {
		return s
	}
	s.name = tierName(b.Tier)
	if b.Tier == blobs.TierDefault {
		s.inferred = "true"
	}
	if changed := b.TierChanged(); changed != 0 {
		s.changed = wire.FormatHTTPTime(changed.Time())
	}
	if to := b.Tiering.To; to != blobs.TierDefault {
		s.status = "rehydrate-pending-to-" + lower(tierName(to))
		s.priority = "Standard"
		if b.Tiering.High {
			s.priority = "High"
		}
	}
	return s
}

// tierName is the tier as it is answered: Hot where nobody chose one.
func tierName(t blobs.Tier) string {
	switch t {
	case blobs.TierCool:
		return "Cool"
	case blobs.TierCold:
		return "Cold"
	case blobs.TierArchive:
		return "Archive"
	}
	return "Hot"
}

// tier writes the headers of a tier, which an operation has since a version. Get Blob Properties alone shows a rehydration.
func (w *headers) tier(first protocol.Version, s shownTier, properties bool) {
	w.since(first, headerTier, s.name)
	w.since(first, "X-Ms-Access-Tier-Inferred", s.inferred)
	w.since(first, "X-Ms-Access-Tier-Change-Time", s.changed)
	if properties {
		w.since(first, "X-Ms-Archive-Status", s.status)
		w.since(protocol.Version20190202, headerPriority, s.priority)
	}
}

// tierElements are those of a tier in a listing.
func tierElements(b []byte, v protocol.Version, s shownTier) []byte {
	if v < version20170417 {
		return b
	}
	for _, e := range [...]struct{ name, text string }{
		{"AccessTier", s.name},
		{"AccessTierInferred", s.inferred},
		{"AccessTierChangeTime", s.changed},
		{"ArchiveStatus", s.status},
		{"RehydratePriority", s.priority},
	} {
		if e.text != "" && (e.name != "RehydratePriority" || v >= protocol.Version20190202) {
			b = wire.AppendElement(b, e.name, e.text)
		}
	}
	return b
}
