package drill

import (
	_ "embed" // For the page.
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed page.html
var pageText string

// page is the report as one HTML page, without anything from elsewhere.
var page = template.Must(template.New("page").Funcs(template.FuncMap{ //nolint:gochecknoglobals // Parsed once.
	"ms":     milliseconds,
	"kinds":  Kinds,
	"number": func(i int) int { return i + 1 },
	"first":  firstLost,
}).Parse(pageText))

// milliseconds words a time.
func milliseconds(d time.Duration) string {
	if d >= 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// lostShown is how many lost writes the page lists.
const lostShown = 200

// firstLost are the lost writes that the page lists.
func firstLost(all []LostWrite) []LostWrite { return all[:min(len(all), lostShown)] }

// The picture: its width, and the height of a line of one kind.
const (
	pictureWidth = 960
	lineHeight   = 36
	lineBar      = 24
)

// picture is what the page draws.
type picture struct {
	*Report
	Width, Height int
	Bars          []bar
	Marks         []mark
	// Gone are the acknowledgements of lost writes. Served is the time without service of an unplanned failover.
	Gone   []mark
	Served []mark
}

// bar is a part of the time of one kind of request.
type bar struct {
	X, Y, W, H float64
	// Class is "done", "failed", "mixed" or "none".
	Class, Title string
}

// mark is a move.
type mark struct {
	X, W float64
	Name string
}

// WritePage writes a report as one HTML page with a picture of the time.
func WritePage(w io.Writer, r *Report) error {
	p := picture{Report: r, Width: pictureWidth, Height: lineHeight*len(Kinds()) + 20}
	width := float64(pictureWidth) / float64(max(len(r.Line), 1))
	for i, part := range r.Line {
		for n, k := range Kinds() {
			b := bar{X: float64(i) * width, Y: float64(n*lineHeight) + 20, W: width, H: lineBar, Class: "none"}
			switch done, failed := part.Done[k], part.Failed[k]; {
			case done > 0 && failed > 0:
				b.Class = "mixed"
			case failed > 0:
				b.Class = "failed"
			case done > 0:
				b.Class = "done"
			}
			b.Title = fmt.Sprintf("%s: %d %s, %d failed", milliseconds(part.From), part.Done[k], k, part.Failed[k])
			p.Bars = append(p.Bars, b)
		}
	}
	scale := float64(pictureWidth) / float64(max(r.Took, 1))
	for _, m := range r.Moves {
		p.Marks = append(p.Marks, mark{X: float64(m.From) * scale, W: max(1, float64(m.To-m.From)*scale), Name: m.Name})
	}
	for _, w := range r.LostWrites {
		p.Gone = append(p.Gone, mark{X: float64(w.Acked) * scale, Name: milliseconds(w.Acked)})
	}
	if u := r.Unplanned; u != nil && u.RTO != nil {
		p.Served = []mark{{X: float64(u.From) * scale, W: max(1, float64(*u.RTO)*scale), Name: milliseconds(*u.RTO)}}
	}
	return page.Execute(w, p)
}
