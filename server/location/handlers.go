package location

import (
	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/tables"
	"antipode/services/catalog"
)

// Serve fills in what a front end of the location needs to serve its data. abandoned takes
// the bytes that failed uploads left behind.
func (l *Location) Serve(o *api.Options, abandoned func(bytes int64)) {
	names := &catalog.Containers{}
	o.Location, o.Directory = l.o.Name, l.Directory
	o.Accounts = &accounts.Handler{Stats: l.Replication}
	o.Tables = &tables.Handler{
		Stamp: l, Writer: l.Primary, Scans: l.o.Scans, NameRest: l.o.NameRest, Names: names,
		InFlight: tables.NewInFlight(tables.InFlightBytesMax), Answers: protocol.NewInFlight(tables.AnswersBytesMax),
	}
	o.Blobs = blobs.NewHandler(blobs.Options{
		Stamp: l, Writer: l.Primary, Payload: l, Names: names, Scans: l.o.Scans, NameRest: l.o.NameRest, Logger: l.o.Logger, Abandoned: abandoned,
	})
}
