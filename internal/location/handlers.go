package location

import (
	"time"

	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/tables"
	"antipode/services/catalog"
)

// nameRest is how long a table's or container's name rests after a deletion
// (spec/table.md 9.2).
const nameRest = 40 * time.Second

// Serve fills in what a front end of the location needs to serve its data. abandoned takes
// the bytes that failed uploads left behind.
func (l *Location) Serve(o *api.Options, abandoned func(bytes int64)) {
	names := &catalog.Containers{}
	o.Location, o.Directory = l.o.Name, l.Directory
	o.Accounts = &accounts.Handler{Stats: l.Replication}
	o.Tables = &tables.Handler{
		Stamp: l, Writer: l.Primary, Clock: l.o.Clock, NameRest: nameRest, Names: names,
		InFlight: protocol.NewInFlight(tables.InFlightBytesMax), Answers: protocol.NewInFlight(tables.AnswersBytesMax),
	}
	o.Blobs = blobs.NewHandler(blobs.Options{
		Stamp: l, Writer: l.Primary, Payload: l, Names: names, NameRest: nameRest, Logger: l.o.Logger, Abandoned: abandoned,
	})
}
