package accounts

import (
	"context"
	"net/http"
	"strconv"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
)

// inFlightBytesMax bounds the bodies of Set Service Properties that are held at once, in bytes.
const inFlightBytesMax = 8 << 20

// read reads the properties of a service of an account; those of a new account if none were set.
func (h *Handler) read(ctx context.Context, r *protocol.Request) (p *catalog.Properties, err error) {
	reader := ranges.OfAccount(h.Stamp, r.Account.Name, r.Account.GeoEpoch(), r.Secondary)
	err = reader.Read(ctx, h.Stamp.Route().Catalog(), func(s ranges.State) error {
		p, err = catalog.GetProperties(s, r.Service, r.Account.Name)
		return err
	})
	return p, err
}

// noProperties is the error of a version without service properties.
func noProperties() error {
	return wire.BadParameter("comp", "properties", "Service properties are served from version 2009-09-19 on.")
}

// getProperties is Get Service Properties (protocol/service.md 2).
func (h *Handler) getProperties(w http.ResponseWriter, r *protocol.Request) error {
	if r.Version < protocol.Version20090919 {
		return noProperties()
	}
	p, err := h.read(r.HTTP.Context(), r)
	if err != nil {
		return err
	}
	body := appendProperties(nil, r.Service, r.Version, p)
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // The client is gone when this fails.
	return nil
}

// setProperties is Set Service Properties (protocol/service.md 2). What the document does not name stays.
func (h *Handler) setProperties(w http.ResponseWriter, r *protocol.Request, m operation.Match) error {
	if r.Version < protocol.Version20090919 {
		return noProperties()
	}
	limit := m.BodyMax(r.Version)
	hold := h.bodies(limit).Hold(r)
	defer hold.Release()
	body, err := protocol.ReadWhole(r.HTTP.Context(), r, hold, limit)
	if err != nil {
		return err
	}
	change, err := parseProperties(body, r.Service, r.Version)
	if err != nil {
		return err
	}
	set := &catalog.SetProperties{Service: r.Service, Account: r.Account.Name, Change: change}
	if err := h.Writer.Write(r.HTTP.Context(), set); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (h *Handler) bodies(limit int64) *protocol.InFlight {
	h.begin.Do(func() { h.inFlight = protocol.NewInFlightOfDocuments(inFlightBytesMax, limit) })
	return h.inFlight
}

// child is a child of the document of properties, and who has it.
type child struct {
	name string
	// since is the first version that has it, before the first that does not; empty for all.
	since, before protocol.Version
	blobsAlone    bool
}

// childrenOf are the children that documents of a service have in a version, in the order of an answer
// (protocol/service.md 2.1).
func childrenOf(s geo.Service, v protocol.Version) (out []string) {
	for _, c := range [...]child{
		{name: "Logging"},
		{name: "Metrics", before: protocol.Version20130815},
		{name: "HourMetrics", since: protocol.Version20130815},
		{name: "MinuteMetrics", since: protocol.Version20130815},
		{name: "Cors", since: protocol.Version20130815},
		{name: "DefaultServiceVersion", since: protocol.Version20110818, blobsAlone: true},
		{name: "DeleteRetentionPolicy", since: protocol.Version20170729, blobsAlone: true},
		{name: "StaticWebsite", since: "2018-03-28", blobsAlone: true},
	} {
		if v >= c.since && (c.before == "" || v < c.before) && (s == geo.Blob || !c.blobsAlone) {
			out = append(out, c.name)
		}
	}
	return out
}
