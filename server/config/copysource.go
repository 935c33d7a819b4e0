package config

import (
	"fmt"

	"antipode/internal/outbound"
)

// CopySource is a server from which clients may copy blobs: see outbound.Entry.
type CopySource struct {
	// Host: a name, *. and a name for all names under it, or an address, perhaps with a port.
	Host         string `yaml:"host"`
	AllowPrivate bool   `yaml:"allow_private"`
}

// Outbound is CopySources as front ends take it. The Node was validated.
func (n Node) Outbound() outbound.List {
	var entries []outbound.Entry
	for _, s := range n.CopySources {
		entries = append(entries, outbound.Entry(s))
	}
	list, _ := outbound.NewList(entries...)
	return list
}

// copySources checks the servers that copies may read from.
func (w *walker) copySources(sources []CopySource) {
	for i, s := range sources {
		field := fmt.Sprintf("copy_sources[%d].host", i)
		const what = "a name such as storage.example, *.storage.example for all names under it, or an address; perhaps with a port"
		if !w.need(field, s.Host, what) {
			continue
		}
		if _, err := outbound.NewList(outbound.Entry(s)); err != nil {
			w.bad(field, "write "+what+", without a scheme or path")
		}
	}
}
