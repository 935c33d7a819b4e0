package blobs

import (
	"net/http"
	"strconv"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/lease"
	"antipode/services/storageerr"
)

const (
	headerLeaseID       = "X-Ms-Lease-Id"
	headerLeaseAction   = "X-Ms-Lease-Action"
	headerLeaseDuration = "X-Ms-Lease-Duration"
	headerProposedID    = "X-Ms-Proposed-Lease-Id"
	headerBreakPeriod   = "X-Ms-Lease-Break-Period"
)

// leaseAction returns the action of a lease that a request asks for; before 2012-02-12 there were fewer.
func (c *call) leaseAction() (lease.Action, error) {
	text := c.r.Header(headerLeaseAction)
	if text == "" {
		return 0, missing(headerLeaseAction)
	}
	of, known := map[string]lease.Action{
		"acquire": lease.Acquire, "renew": lease.Renew, "change": lease.Change, "release": lease.Release, "break": lease.Break,
	}[lower(text)]
	if !known || of == lease.Change && c.r.Version < protocol.Version20120212 {
		return 0, badHeader(headerLeaseAction, text)
	}
	return of, nil
}

// parseLease reads what Lease Blob and Lease Container ask for (protocol/blob.md 17.1). Headers of other actions are ignored.
func (c *call) parseLease() (r lease.Request, err error) {
	if err := c.checkSince(); err != nil {
		return r, err
	}
	if r.Action, err = c.leaseAction(); err != nil {
		return r, err
	}
	if r.Action != lease.Break && c.r.Access.CreatesOnly() { // The letter for a deletion is one for a break alone (17.1, SAS).
		if c.r.Access.Hidden {
			return r, storageerr.ResourceNotFound
		}
		return r, storageerr.PermissionMismatch
	}
	switch r.Action {
	case lease.Acquire:
		return r, c.parseAcquire(&r)
	case lease.Break:
		if text := c.r.Header(headerBreakPeriod); text != "" && c.r.Version >= protocol.Version20120212 {
			r.Period = new(uint32)
			*r.Period, err = parseSeconds(headerBreakPeriod, text, 0, lease.BreakMax)
		}
		return r, err
	case lease.Change:
		if r.Proposed, err = c.requiredID(headerProposedID); err != nil {
			return r, err
		}
	}
	r.ID, err = c.requiredID(headerLeaseID)
	return r, err
}

// parseAcquire reads the duration and the ID of a new lease. Before 2012-02-12 it is of a minute, and clients propose no ID.
func (c *call) parseAcquire(r *lease.Request) error {
	text, proposed := c.r.Header(headerLeaseDuration), c.r.Header(headerProposedID)
	if c.r.Version < protocol.Version20120212 {
		if text != "" {
			return badHeader(headerLeaseDuration, text)
		}
		text, proposed = strconv.Itoa(lease.DurationMax), ""
	}
	var err error
	switch text {
	case "":
		return missing(headerLeaseDuration)
	case "-1":
	default:
		if r.Seconds, err = parseSeconds(headerLeaseDuration, text, lease.DurationMin, lease.DurationMax); err != nil {
			return err
		}
	}
	if proposed != "" {
		r.ID, err = c.requiredID(headerProposedID)
		return err
	}
	return c.drawID(&r.ID)
}

func missing(header string) error {
	return storageerr.MissingRequiredHeader.With("HeaderName", lower(header))
}

func parseSeconds(header, text string, least, most uint32) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || uint32(n) < least || uint32(n) > most {
		return 0, badHeader(header, text)
	}
	return uint32(n), nil
}

// requiredID reads a header that has to name a lease.
func (c *call) requiredID(header string) (lease.ID, error) {
	id, err := parseLeaseID(c.r.HTTP.Header, header)
	switch {
	case err != nil:
		return lease.ID{}, err
	case id == nil:
		return lease.ID{}, missing(header)
	}
	return *id, nil
}

// parseLeaseID returns the lease that a header names, nil for none. It is InvalidHeaderValue for
// what no lease is called (protocol/blob.md 17.1).
func parseLeaseID(h http.Header, header string) (*lease.ID, error) {
	text := h.Get(header)
	if text == "" {
		return nil, nil //nolint:nilnil // It names none.
	}
	id, ok := lease.ParseID(text)
	if !ok {
		return nil, badHeader(header, text)
	}
	return &id, nil
}

// leaseBlob is Lease Blob (protocol/blob.md B20).
func (c *call) leaseBlob(r lease.Request) error {
	of, err := c.command()
	if err != nil {
		return err
	}
	w := &blobs.LeaseBlob{Command: of, Request: r}
	if err := c.commit(w, &w.Command); err != nil {
		return err
	}
	c.writeLease(r, w.Modified, w.Lease, w.At)
	return nil
}

// leaseContainer is Lease Container (protocol/blob.md C9).
func (c *call) leaseContainer(r lease.Request) error {
	w := &blobs.LeaseContainer{
		SetLease: catalog.SetLease{Account: c.r.Account.Name, Name: c.res.container, Request: r}, Guard: c.in.guard,
	}
	if err := c.o.Writer.Write(c.ctx, w); err != nil {
		return err
	}
	c.writeLease(r, w.Modified, w.SetLease.Lease, w.At)
	return nil
}

// writeLease answers an action, after which the lease is l.
func (c *call) writeLease(r lease.Request, modified geo.Timestamp, l lease.Lease, at geo.Timestamp) {
	a := head{status: http.StatusOK, modified: modified, leased: l.ID.String()}
	if c.r.Version < protocol.Version20130815 { // Without an ETag.
		a.modified = 0
		c.w.Header().Set("Last-Modified", wire.FormatHTTPTime(modified.Time()))
	}
	switch r.Action {
	case lease.Acquire:
		a.status = http.StatusCreated
	case lease.Release:
		a.leased = ""
	case lease.Break:
		a.status, a.leased, a.left = http.StatusAccepted, "", strconv.Itoa(l.Left(at))
	}
	c.writeHead(&a)
}

// shownLease is what answers show of a lease (protocol/blob.md 17.2).
type shownLease struct{ status, state, duration string }

// showLease is what is shown of a lease now. Most blobs have none, and need no look at the clock.
func (c *call) showLease(l lease.Lease) shownLease {
	s := lease.Available
	if l.Kind != lease.KindNone {
		s = l.State(c.now())
	}
	out := shownLease{status: "unlocked", state: s.String()}
	if s.Locked() {
		out.status = "locked"
	}
	switch {
	case s != lease.Leased:
	case l.Seconds == 0:
		out.duration = "infinite"
	default:
		out.duration = "fixed"
	}
	return out
}

// leaseElements are those of a lease in a listing.
func (c *call) leaseElements(b []byte, l lease.Lease) []byte {
	if c.r.Version < protocol.Version20120212 {
		return b
	}
	shown := c.showLease(l)
	b = wire.AppendElement(wire.AppendElement(b, "LeaseStatus", shown.status), "LeaseState", shown.state)
	if shown.duration != "" {
		b = wire.AppendElement(b, "LeaseDuration", shown.duration)
	}
	return b
}
