package clone

import (
	"context"
	"log/slog"
	"time"

	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/queues"
	"antipode/api/tables"
	"antipode/directory"
	"antipode/geo"
	"antipode/primary"
	"antipode/services"
	"antipode/services/catalog"
	messages "antipode/services/queues"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/route"
	"antipode/stats"
)

// Bounds of what a clone's front end holds in memory. They are below those of a location, beside which it runs.
const (
	requestsMax     = 512
	inFlightBytes   = 32 << 20
	answersBytesMax = 32 << 20
)

// Data configures how a front end treats data, as those of the location do.
type Data struct {
	Scans       *services.Scans
	NameRest    time.Duration
	Rehydration time.Duration
	Logger      *slog.Logger
}

// serve returns the front end over the stamp of a clone. Nothing in its directory runs operations of accounts, and it
// has no other location.
func (o Options) serve(s *stamp.Stamp) *api.Server {
	d, w := directory.NewDirectory(s, ""), primary.New(s)
	f := api.Options{
		Location: o.Node.Location, Zones: o.API.Zones, Clock: o.API.Clock, IDs: o.API.IDs, Logger: o.API.Logger, HopSecret: o.API.HopSecret,
		Observe:   o.API.Observe,
		Directory: only{d, o.Account}, Route: func() *route.Table { return s.Route() }, RequestsMax: requestsMax,
		Accounts: &accounts.Handler{Stats: noStats, Stamp: s, Writer: w},
		Tables: &tables.Handler{
			Stamp: s, Writer: w, Scans: o.Data.Scans, NameRest: o.Data.NameRest, Names: d.Containers(),
			InFlight: tables.NewInFlight(inFlightBytes), Answers: protocol.NewInFlight(answersBytesMax),
		},
		Blobs: blobs.NewHandler(blobs.Options{
			Stamp: s, Writer: w, Payload: s, Names: d.Containers(), Scans: o.Data.Scans, NameRest: o.Data.NameRest, Logger: o.Data.Logger,
			Rehydration:      o.Data.Rehydration,
			InFlightBytesMax: inFlightBytes, AnswersBytesMax: answersBytesMax,
		}),
		Queues: queues.NewHandler(queues.Options{
			Stamp: s, Writer: w, Names: d.Containers(), Scans: o.Data.Scans, NameRest: o.Data.NameRest,
			Messages:         messages.New(messages.Options{Stamp: s, Writer: w, Clock: o.API.Clock}),
			InFlightBytesMax: inFlightBytes, AnswersBytesMax: answersBytesMax,
		}),
	}
	return api.NewServer(f)
}

// noStats refuses the statistics of replication: a clone has no secondary to show them.
func noStats(context.Context, *catalog.Account, geo.Service) (stats.Replication, error) {
	return stats.Replication{}, storageerr.ReadsDisabled
}

// only is a directory of one account. The catalog of a clone has the rows of the others too, which nobody may ask for.
type only struct {
	*directory.Directory
	name geo.Account
}

// Resolve implements api.Directory.
func (d only) Resolve(
	ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string,
) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	if name != d.name {
		return nil, nil, nil, storageerr.AccountNotFound
	}
	return d.Directory.Resolve(ctx, name, s, container)
}
