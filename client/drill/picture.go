package drill

import (
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"
)

// The picture: labels at the left, and the time at the right of them, a line for each kind of request and each step.
const (
	labelWidth = 400
	timeWidth  = 760
	rightSpace = 40 // For half of the last mark of the axis.
	lineHeight = 26
	lineBar    = 16
	axisHeight = 28
	// labelLength is how many characters of a step's name fit in the labels.
	labelLength = 60
)

// picture is what the page draws.
type picture struct {
	*Report
	Width, Height int
	// Bottom is where the lines end and the axis begins.
	Bottom, TickEnd float64
	Left            int
	Lines           []line
	// Shades are the times of the steps, behind the lines.
	Shades []bar
	Ticks  []tick
}

// line is a labelled line of bars.
type line struct {
	Label, Title string
	Y, TextY     float64
	Bars         []bar
}

// bar is a part of the time.
type bar struct {
	X, Y, W, H float64
	// Class is one of the classes of the page's style.
	Class, Title string
}

// tick is a mark of the axis.
type tick struct {
	X     float64
	Label string
}

// Classes of bars. A part of the time in which no request ended is no failure by itself: what waited is as the request
// that ended next.
const (
	classDone   = "done"
	classFailed = "failed"
	classMixed  = "mixed"
	classWaited = "waited"
	classHung   = "hung"
	classNone   = "none"
)

// WritePage writes a report as one HTML page with a picture of the time.
func WritePage(w io.Writer, r *Report) error {
	p := picture{Report: r, Width: labelWidth + timeWidth + rightSpace, Left: labelWidth}
	for _, k := range Kinds() {
		p.add(string(k), "", p.requests(k)...)
	}
	if u := r.Unplanned; u != nil {
		if u.RTO != nil {
			p.add("no service (RTO)", "", p.bar(u.From, u.From+*u.RTO, "served", "RTO "+seconds(*u.RTO)))
		}
		var gone []bar
		for _, l := range r.LostWrites {
			gone = append(gone, p.bar(l.Acked, l.Acked, "lost", "a write that was acknowledged at "+seconds(l.Acked)+" is gone"))
		}
		p.add("acknowledged writes that are gone", "", gone...)
	}
	for i, m := range r.Moves {
		label, title := fmt.Sprintf("%d  %s", i+1, m.Name), ""
		if utf8.RuneCountInString(label) > labelLength {
			label, title = string([]rune(label)[:labelLength-1])+"…", label
		}
		b := p.bar(m.From, m.To, "move", m.Name+": "+seconds(m.Took()))
		p.add(label, title, b)
		p.Shades = append(p.Shades, b)
	}
	p.Bottom = float64(len(p.Lines) * lineHeight)
	p.Height = len(p.Lines)*lineHeight + axisHeight
	p.TickEnd = p.Bottom + 5
	p.axis()
	return page.Execute(w, p)
}

// Passed is whether the drill went well.
func (p picture) Passed() bool { return len(p.Faults()) == 0 }

// Key explains the classes that the picture has.
func (p picture) Key() (out []bar) {
	has := map[string]bool{}
	for _, l := range p.Lines {
		for _, b := range l.Bars {
			has[b.Class] = true
		}
	}
	for _, b := range []bar{
		{Class: classDone, Title: "all succeeded"},
		{Class: classMixed, Title: "some failed"},
		{Class: classFailed, Title: "all failed"},
		{Class: classWaited, Title: "none ended, the next one succeeded: clients waited"},
		{Class: classHung, Title: "none ended, the next one failed"},
		{Class: classNone, Title: "none ended any more"},
		{Class: "move", Title: "a step"},
		{Class: "served", Title: "until the new primary took a write"},
		{Class: "lost", Title: "acknowledged, and gone"},
	} {
		if has[b.Class] {
			out = append(out, b)
		}
	}
	return out
}

// add adds a line below the others.
func (p *picture) add(label, title string, bars ...bar) {
	y := float64(len(p.Lines)*lineHeight) + (lineHeight-lineBar)/2
	for i := range bars {
		bars[i].Y, bars[i].H = y, lineBar
	}
	p.Lines = append(p.Lines, line{Label: label, Title: title, Y: y, TextY: y + lineBar - 4, Bars: bars})
}

// x is where a time is.
func (p *picture) x(d time.Duration) float64 {
	return labelWidth + timeWidth*float64(d)/float64(max(p.Took, 1))
}

// bar is a bar from one time to another, which can be seen however short it is.
func (p *picture) bar(from, to time.Duration, class, title string) bar {
	x := p.x(from)
	return bar{X: x, W: max(1.5, p.x(to)-x), Class: class, Title: title}
}

// requests are the bars of a kind of request. Neighbours of one class are one bar: seams between them would look like
// gaps.
func (p *picture) requests(k Kind) (out []bar) {
	classes := make([]string, len(p.Line))
	next := classNone
	for i, part := range slices.Backward(p.Line) {
		switch done, failed := part.Done[k], part.Failed[k]; {
		case done > 0 && failed > 0:
			classes[i], next = classMixed, classWaited
		case failed > 0:
			classes[i], next = classFailed, classHung
		case done > 0:
			classes[i], next = classDone, classWaited
		default:
			classes[i] = next
		}
	}
	for from := 0; from < len(classes); {
		to, done, failed := from, 0, 0
		for ; to < len(classes) && classes[to] == classes[from]; to++ {
			done, failed = done+p.Line[to].Done[k], failed+p.Line[to].Failed[k]
		}
		end := p.Took
		if to < len(classes) {
			end = p.Line[to].From
		}
		begin := p.Line[from].From
		title := fmt.Sprintf("%s to %s: %d done, %d failed", seconds(begin), seconds(end), done, failed)
		out = append(out, p.bar(begin, end, classes[from], title))
		from = to
	}
	return out
}

// ticksMax is how many marks the axis has at most, but for the one at 0.
const ticksMax = 10

// axis marks the time in whole seconds, as far apart as there is room for.
func (p *picture) axis() {
	step := time.Second
	for _, by := range []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600} {
		if step = by * time.Second; p.Took/step <= ticksMax {
			break
		}
	}
	step = max(step, (p.Took / ticksMax).Truncate(time.Second)) // Of a drill of days.
	for at := time.Duration(0); at <= p.Took; at += step {
		p.Ticks = append(p.Ticks, tick{X: p.x(at), Label: fmt.Sprintf("%d s", int(at.Seconds()))})
	}
}
