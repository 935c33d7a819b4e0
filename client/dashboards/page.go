package dashboards

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

//go:embed page.html
var pageHTML string

// Prometheus answers queries; v1.API does.
type Prometheus interface {
	QueryRange(ctx context.Context, query string, r v1.Range, opts ...v1.Option) (model.Value, v1.Warnings, v1.Infos, error)
}

// View is what of the dashboards a page shows.
type View struct {
	// From and To bound the time. Both are shown in UTC.
	From, To time.Time
	// Step is between two values, above zero; rates are taken over four of them.
	Step time.Duration
	// Locations is a regular expression of locations; "" is all.
	Locations string
	// Refresh has a browser load the page again after it; 0 does not.
	Refresh time.Duration
}

// Drawn is a panel with its values.
type Drawn struct {
	Panel
	// Series are those of all queries, by legend.
	Series []Series
	// Err is why there are none: a query that failed.
	Err error
}

// Series is one line of a panel.
type Series struct {
	Legend string
	Values []model.SamplePair
}

// ratesOver is how many steps a rate is taken over: fewer would miss values where a scrape is late.
const ratesOver = 4

// Ask asks for the values of a panel. An error is in the panel.
func (p Panel) Ask(ctx context.Context, from Prometheus, v View) Drawn {
	locations := v.Locations
	if locations == "" {
		locations = ".+"
	}
	span := v1.Range{Start: v.From, End: v.To, Step: v.Step}
	if p.Kind == Number { // A series that ended before now has no value now, whatever it had last.
		span.Start = v.To
	}
	out := Drawn{Panel: p}
	for _, q := range p.Queries {
		expr := q.With(locations, model.Duration(ratesOver*v.Step).String())
		got, _, _, err := from.QueryRange(ctx, expr, span)
		if err != nil {
			out.Err = errors.Join(out.Err, fmt.Errorf("query %s: %w", expr, err))
			continue
		}
		matrix, ok := got.(model.Matrix)
		if !ok {
			out.Err = errors.Join(out.Err, fmt.Errorf("query %s: the answer is a %s", expr, got.Type()))
			continue
		}
		for _, s := range matrix {
			out.Series = append(out.Series, Series{q.legend(s.Metric), s.Values})
		}
	}
	slices.SortStableFunc(out.Series, func(a, b Series) int { return strings.Compare(a.Legend, b.Legend) })
	return out
}

// label is a label in a legend.
func label() *regexp.Regexp { return regexp.MustCompile(`\{\{(\w+)\}\}`) }

// legend returns the legend of a series.
func (q Query) legend(of model.Metric) string {
	return strings.TrimSpace(label().ReplaceAllStringFunc(q.Legend, func(s string) string {
		return string(of[model.LabelName(strings.Trim(s, "{}"))])
	}))
}

// Shown is a series' newest value as a reader of a number sees it.
type Shown struct {
	Legend, Value string
	// Bad is set for a value that an operator looks at, and for one that is not known.
	Bad bool
}

// unknown is what a number shows that nothing measured.
const unknown = "not known"

// Numbers returns the newest value of each series, and one that is bad without any: a number that nothing measured is
// no sign that all is well.
func (d Drawn) Numbers() (out []Shown) {
	for _, s := range d.Series {
		if n := len(s.Values); n > 0 {
			out = append(out, d.shown(s.Legend, float64(s.Values[n-1].Value)))
		}
	}
	if len(out) == 0 {
		out = append(out, d.shown("", math.NaN()))
	}
	return out
}

func (d Drawn) shown(legend string, v float64) Shown {
	if math.IsNaN(v) {
		return Shown{legend, unknown, true}
	}
	bad := d.Bad != 0 && (d.BadBelow && v < d.Bad || !d.BadBelow && v >= d.Bad)
	return Shown{legend, d.Unit.format(v), bad}
}

// IsBad says whether one of the values of a number is bad.
func (d Drawn) IsBad() bool {
	return d.IsNumber() && slices.ContainsFunc(d.Numbers(), func(s Shown) bool { return s.Bad })
}

// IsNumber says whether the panel shows the newest value alone.
func (d Drawn) IsNumber() bool { return d.Kind == Number }

// Page writes a page of HTML with all dashboards: one file, without scripts or anything from elsewhere. A query that failed
// is shown in its panel; the error is that of the first one if all of them did.
func Page(ctx context.Context, w io.Writer, from Prometheus, v View) error {
	type row struct {
		Title  string
		Panels []template.HTML
	}
	type screen struct {
		Dashboard
		Drawn []row
	}
	t, err := template.New("page").Funcs(template.FuncMap{"color": cssColor}).Parse(pageHTML)
	if err != nil {
		return err
	}
	var screens []screen
	answered, failed := false, error(nil)
	for _, d := range Dashboards() {
		s := screen{Dashboard: d}
		for _, r := range d.Rows {
			out := row{Title: r.Title}
			for _, p := range r.Panels {
				drawn := p.Ask(ctx, from, v)
				if answered = answered || drawn.Err == nil; failed == nil {
					failed = drawn.Err
				}
				var b bytes.Buffer
				picture, err := drawn.picture(v)
				if err != nil {
					return err
				}
				if err := t.ExecuteTemplate(&b, "panel", map[string]any{"Panel": drawn, "Picture": picture}); err != nil {
					return err
				}
				out.Panels = append(out.Panels, template.HTML(b.String())) //nolint:gosec // The template has escaped it.
			}
			s.Drawn = append(s.Drawn, out)
		}
		screens = append(screens, s)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !answered {
		return failed
	}
	return t.ExecuteTemplate(w, "page", map[string]any{"Screens": screens, "View": v, "Refresh": int(v.Refresh.Seconds())})
}
