package dashboards

import "strings"

// Dashboard is one screen.
type Dashboard struct {
	// UID is its identity at Grafana, and the name of its file. Links contain it: never rename it.
	UID   string
	Title string
	// About is what it is for, in a sentence.
	About string
	Rows  []Row
}

// Row is a part of a dashboard under one title.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel is one picture.
type Panel struct {
	Title string
	// About says what is shown, and what to think of it.
	About   string
	Kind    Kind
	Unit    Unit
	Queries []Query
	// Bad is where the values begin that an operator looks at: above it, or below it with BadBelow. Zero: there is none.
	Bad      float64
	BadBelow bool
}

// Query is one expression of PromQL. It may use $location, a regular expression of locations, and $rate, the time over which
// rates are taken.
type Query struct {
	Expr string
	// Legend names a series by its labels: {{account}} {{service}}.
	Legend string
}

// Kind is how a panel is drawn.
type Kind int

// The kinds.
const (
	// Lines is values over time.
	Lines Kind = iota
	// Steps is a state over time, which holds until the next value.
	Steps
	// Number is the value now.
	Number
)

// Unit is that of a panel's values, as Grafana names it.
type Unit string

// The units.
const (
	Seconds        Unit = "s"
	Bytes          Unit = "decbytes"
	BytesPerSecond Unit = "Bps"
	PerSecond      Unit = "suffix:/s"
	Share          Unit = "percentunit"
	Count          Unit = "short"
)

// Dashboards returns all of them.
func Dashboards() []Dashboard { return []Dashboard{geo(), location(), edge()} }

// With returns the expression for locations and the time of rates, both in PromQL.
func (q Query) With(locations, rate string) string {
	return strings.NewReplacer("$location", locations, "$rate", rate).Replace(q.Expr)
}

// lines is a panel of lines with one query.
func lines(title string, unit Unit, expr, legend, about string) Panel {
	return Panel{Title: title, About: about, Unit: unit, Queries: []Query{{expr, legend}}}
}

// steps is a panel of a state with one query.
func steps(title string, unit Unit, expr, legend, about string) Panel {
	p := lines(title, unit, expr, legend, about)
	p.Kind = Steps
	return p
}

// number is a panel of one number, of which values above bad are bad.
func number(title string, unit Unit, expr, legend string, bad float64, about string) Panel {
	p := lines(title, unit, expr, legend, about)
	p.Kind, p.Bad = Number, bad
	return p
}
