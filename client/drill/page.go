package drill

import (
	_ "embed" // For the page.
	"fmt"
	"html/template"
	"time"
)

//go:embed page.html
var pageText string

// page is the report as one HTML page, without anything from elsewhere.
var page = template.Must(template.New("page").Funcs(template.FuncMap{ //nolint:gochecknoglobals // Parsed once.
	"s":      seconds,
	"kinds":  Kinds,
	"number": func(i int) int { return i + 1 },
	"first":  firstLost,
}).Parse(pageText))

// seconds words a time. All are in one unit, so that two of them are compared at a glance.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// lostShown is how many lost writes the page lists.
const lostShown = 200

// firstLost are the lost writes that the page lists.
func firstLost(all []LostWrite) []LostWrite { return all[:min(len(all), lostShown)] }
