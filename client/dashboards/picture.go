package dashboards

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of a picture.
const (
	pictureWidth  = 4.8 * vg.Inch
	pictureHeight = 2.2 * vg.Inch
)

// headroom keeps the highest value off the edge, as a share of the height.
const headroom = 0.06

// colorOf returns the colour of the nth series.
func colorOf(n int) color.RGBA {
	all := []color.RGBA{
		{0x1f, 0x77, 0xb4, 0xff},
		{0xd6, 0x63, 0x0a, 0xff},
		{0x2c, 0x8a, 0x2c, 0xff},
		{0xb0, 0x2a, 0x30, 0xff},
		{0x7a, 0x55, 0xb0, 0xff},
		{0x7d, 0x52, 0x48, 0xff},
		{0xc0, 0x5a, 0xa5, 0xff},
		{0x60, 0x60, 0x60, 0xff},
		{0x8f, 0x8f, 0x10, 0xff},
		{0x10, 0x95, 0xa5, 0xff},
	}
	return all[n%len(all)]
}

// cssColor returns the same for CSS.
func cssColor(n int) template.CSS {
	c := colorOf(n)
	return template.CSS(fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)) //nolint:gosec // It has numbers alone.
}

// picture draws the series as SVG. It is "" without any, or for a number.
func (d Drawn) picture(v View) (template.HTML, error) {
	if d.Kind == Number || len(d.Series) == 0 {
		return "", nil
	}
	p := plot.New()
	p.X.Min, p.X.Max = seconds(v.From), seconds(v.To)
	p.X.Tick.Marker = plot.TimeTicks{Format: "15:04:05"}
	p.Y.Tick.Marker = d.Unit
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	for n, s := range d.Series {
		for _, part := range s.parts(v.Step) {
			l, err := plotter.NewLine(part)
			if err != nil {
				return "", fmt.Errorf("panel %s: %s: %w", d.Title, s.Legend, err)
			}
			l.Color, l.Width = colorOf(n), vg.Points(1.2)
			if d.Kind == Steps {
				l.StepStyle = plotter.PostStep
			}
			p.Add(l)
		}
	}
	if p.Y.Max <= p.Y.Min { // All are zero, or there are none: the line is at the bottom, not in the middle.
		p.Y.Max = p.Y.Min + 1
	}
	p.Y.Max += headroom * (p.Y.Max - p.Y.Min)
	c := vgsvg.New(pictureWidth, pictureHeight)
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", fmt.Errorf("panel %s: %w", d.Title, err)
	}
	_, svg, _ := bytes.Cut(b.Bytes(), []byte("?>")) // Inside HTML there is no declaration of XML.
	return template.HTML(svg), nil                  //nolint:gosec // It was drawn here: numbers and times.
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// parts returns the values in runs without a gap: a line over a time without values would show what nobody measured.
func (s Series) parts(step time.Duration) (out []plotter.XYs) {
	var run plotter.XYs
	end := func() {
		if len(run) > 0 {
			out = append(out, run)
		}
		run = nil
	}
	last := math.Inf(-1)
	for _, v := range s.Values {
		at, y := seconds(v.Timestamp.Time()), float64(v.Value)
		if at-last > 1.5*step.Seconds() || math.IsNaN(y) || math.IsInf(y, 0) {
			end()
		}
		if last = at; !math.IsNaN(y) && !math.IsInf(y, 0) {
			run = append(run, plotter.XY{X: at, Y: y})
		}
	}
	end()
	return out
}

// Ticks implements plot.Ticker: marks of the unit.
func (u Unit) Ticks(least, most float64) []plot.Tick {
	var marks []plot.Tick
	for _, m := range (plot.DefaultTicks{}).Ticks(least, most) {
		if u == Count && m.Value != math.Trunc(m.Value) { // There is no half of a replica.
			continue
		}
		if m.Label != "" {
			m.Label = u.format(m.Value)
		}
		marks = append(marks, m)
	}
	return marks
}

// format writes a value in a form that a person reads.
func (u Unit) format(v float64) string {
	switch u {
	case Seconds:
		return formatSeconds(v)
	case Bytes:
		return scaled(v, 1000, []string{" B", " kB", " MB", " GB", " TB"})
	case BytesPerSecond:
		return scaled(v, 1000, []string{" B/s", " kB/s", " MB/s", " GB/s", " TB/s"})
	case Share:
		return fmt.Sprintf("%.3g %%", 100*v)
	case PerSecond:
		return scaled(v, 1000, []string{"/s", " k/s", " M/s"})
	default:
		return scaled(v, 1000, []string{"", "k", "M", "G", "T"})
	}
}

func formatSeconds(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0 s"
	case a < 1e-3:
		return fmt.Sprintf("%.3g us", v*1e6)
	case a < 1:
		return fmt.Sprintf("%.3g ms", v*1e3)
	case a < 120:
		return fmt.Sprintf("%.3g s", v)
	case a < 7200:
		return fmt.Sprintf("%.3g min", v/60)
	case a < 48*3600:
		return fmt.Sprintf("%.4g h", v/3600)
	default:
		return fmt.Sprintf("%.4g days", v/86400)
	}
}

// scaled writes a value in the largest unit of which it has one.
func scaled(v, by float64, units []string) string {
	n := 0
	for ; math.Abs(v) >= by && n < len(units)-1; n++ {
		v /= by
	}
	return fmt.Sprintf("%.4g%s", v, units[n])
}
