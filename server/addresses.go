package server

import (
	"log/slog"

	"antipode/api/admin"
	"antipode/geo"
	"antipode/server/config"
)

// addresses are where a front end listens or is reached, host:port.
type addresses struct{ blob, queue, table string }

func (a addresses) of(s geo.Service) string {
	switch s {
	case geo.Blob:
		return a.blob
	case geo.Queue:
		return a.queue
	default:
		return a.table
	}
}

// adminOptions are those of the one admin port of a process.
func adminOptions(listen string, c config.Admin, token admin.TokenFile, log *slog.Logger) admin.Options {
	return admin.Options{TokenFile: token, Listen: listen, Hosts: c.Hosts, Log: log}
}
