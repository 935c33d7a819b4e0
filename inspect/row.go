package inspect

import (
	"fmt"
	"strings"

	"antipode/geo"
)

// Row is one line of a report: its exported fields as JSON, Text for people.
type Row interface{ Text() string }

// Emit takes the rows of a report in order; an error ends the report.
type Emit func(Row) error

// Options says what to show. The zero value shows everything but single chunks.
type Options struct {
	// Range shows that range alone; 0 all.
	Range geo.RangeID
	// From shows log records of that index and above.
	From uint64
	// Kind shows the state rows of that kind alone; empty all.
	Kind string
	// Account shows the lanes of that account alone; empty all.
	Account geo.Account
	// Summary leaves out single records, rows and chunks.
	Summary bool
	// Chunks shows each chunk of the extents; else only damaged ones.
	Chunks bool
	// Verify reads every byte of every chunk. Else damage shows only where a scan meets it.
	Verify bool
}

// Damage is a place that cannot be read as it was written.
type Damage struct {
	Type string `json:"type"`
	// Store is log, state, extents or replicas.
	Store string `json:"store"`
	// File, or what is known of the place; From and To are bytes in it, 0 where unknown.
	File   string `json:"file,omitempty"`
	From   int64  `json:"from,omitempty"`
	To     int64  `json:"to,omitempty"`
	Detail string `json:"detail"`
}

// Text implements Row.
func (d Damage) Text() string {
	out := "DAMAGED " + d.Store
	if d.File != "" {
		out += " " + d.File
	}
	if d.To > 0 {
		out += fmt.Sprintf(" bytes %d to %d", d.From, d.To)
	}
	return out + ": " + d.Detail
}

// report passes rows on and counts damage.
type report struct {
	emit    Emit
	damaged int
}

func (r *report) damage(d Damage) error {
	r.damaged++
	d.Type = "damage"
	d.Detail = strings.Join(strings.Fields(d.Detail), " ")
	return r.emit(d)
}

// orDash is text for people where there may be none.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
