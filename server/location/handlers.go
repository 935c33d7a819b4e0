package location

import (
	"time"

	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/queues"
	"antipode/api/tables"
	"antipode/geo"
)

// opClone is what requests of clones are counted as, whatever they ask for: a drill is none of the location's load.
const opClone = "Clone"

// Serve fills in what a front end of the location needs to serve its data, and what it
// reports to the instruments of the process.
func (l *Location) Serve(o *api.Options, m *Meters) {
	l.clones.api = *o
	l.clones.api.Observe = func(s geo.Service, _ string, status int, code string, took time.Duration) {
		m.Requests.Observe(l.o.Name, s, opClone, status, code, took)
	}
	names := l.Directory.Containers()
	o.Location, o.Directory, o.Route, o.Authority, o.Clone = l.o.Name, l.Directory, l.Route, l, l.clones.find
	o.Accounts = &accounts.Handler{Stats: l.Replication, Stamp: l, Writer: l.Primary}
	o.Tables = &tables.Handler{
		Stamp: l, Writer: l.Primary, Scans: l.o.Scans, NameRest: l.o.NameRest, Names: names,
		InFlight: tables.NewInFlight(tables.InFlightBytesMax), Answers: protocol.NewInFlight(tables.AnswersBytesMax),
	}
	o.Blobs = blobs.NewHandler(blobs.Options{
		Stamp: l, Writer: l.Primary, Payload: l, Names: names, Scans: l.o.Scans, NameRest: l.o.NameRest, Logger: l.o.Logger,
		Rehydration: l.o.Rehydration,
		Abandoned:   func(bytes int64) { m.Abandoned.Add(l.o.Name, bytes) },
	})
	o.Queues = queues.NewHandler(queues.Options{
		Stamp: l, Writer: l.Primary, Names: names, Scans: l.o.Scans, NameRest: l.o.NameRest,
		Messages: l.Messages(),
	})
	o.Observe = func(s geo.Service, op string, status int, code string, took time.Duration) {
		m.Requests.Observe(l.o.Name, s, op, status, code, took)
	}
}
