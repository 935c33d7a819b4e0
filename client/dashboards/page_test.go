package dashboards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"antipode/internal/hosts"
)

// fixed answers each query with the same, and keeps what was asked.
type fixed struct {
	model.Value
	err   error
	asked []string
	// refuses is how many of the first queries fail.
	refuses int
	// spans are the times that were asked for, by query.
	spans map[string]v1.Range
}

func (f *fixed) QueryRange(_ context.Context, query string, r v1.Range, _ ...v1.Option) (model.Value, v1.Warnings, v1.Infos, error) {
	if f.spans == nil {
		f.spans = map[string]v1.Range{}
	}
	f.spans[query] = r
	f.asked = append(f.asked, query)
	if len(f.asked) <= f.refuses {
		return nil, nil, nil, fmt.Errorf("query %d is refused", len(f.asked))
	}
	return f.Value, nil, nil, f.err
}

var at = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func samples(of model.Metric, values ...float64) *model.SampleStream {
	s := &model.SampleStream{Metric: of}
	for n, v := range values {
		s.Values = append(s.Values, model.SamplePair{Timestamp: model.TimeFromUnix(at.Unix() + int64(n)), Value: model.SampleValue(v)})
	}
	return s
}

// Every query is asked with the locations and the time of rates filled in, and what it answers is on the page, escaped.
func TestPageShowsAnswers(t *testing.T) {
	f := &fixed{Value: model.Matrix{samples(model.Metric{"location": "north", "account": `<b>&`, "service": "blob"}, 1, 2, 3)}}
	var out bytes.Buffer
	require.NoError(t, Page(t.Context(), &out, f, Last(time.Minute, at.Add(time.Minute))))
	require.Contains(t, out.String(), "&lt;b&gt;&amp; blob, at north")
	require.NotContains(t, out.String(), "<b>")
	require.Contains(t, out.String(), "<svg")
	require.NotContains(t, out.String(), "<?xml")
	for _, q := range f.asked {
		require.NotContains(t, q, "$", "a variable is left")
	}
	panels := 0
	for _, d := range Dashboards() {
		require.Contains(t, out.String(), `id="`+d.UID+`"`)
		for _, r := range d.Rows {
			panels += len(r.Panels)
		}
	}
	require.Equal(t, panels, strings.Count(out.String(), "<figure"))
}

// A query that fails is shown where it belongs; if all do, there is no page.
func TestPageOfErrors(t *testing.T) {
	refused := errors.New("connection refused")
	require.ErrorIs(t, Page(t.Context(), &bytes.Buffer{}, &fixed{err: refused}, Last(time.Minute, at)), refused)
	w := httptest.NewRecorder()
	Handler(&fixed{err: refused}, time.Minute, func() time.Time { return at }, hosts.New("dashboards.example:13000")).ServeHTTP(w, request(http.MethodGet, "/"))
	require.Equal(t, http.StatusBadGateway, w.Code)
	require.Contains(t, w.Body.String(), "connection refused")

	var out bytes.Buffer
	require.NoError(t, Page(t.Context(), &out, &fixed{Value: model.Matrix{}, refuses: 1}, Last(time.Minute, at)))
	require.Equal(t, 1, strings.Count(out.String(), `class="error"`))
	require.ErrorContains(t, Page(t.Context(), &out, &fixed{refuses: math.MaxInt}, Last(time.Minute, at)), "query 1 is refused", "the first one")

	d := lines("title", Count, "up", "", "about").Ask(t.Context(), &fixed{Value: &model.Scalar{}}, Last(time.Minute, at))
	require.ErrorContains(t, d.Err, "up: the answer is a scalar")
}

// request is one to the page, at the name that it listens on.
func request(method, path string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "dashboards.example"
	return r
}

// A page of another site, whose owner has its name lead here (DNS rebinding), gets nothing, and nothing is asked for it.
//
// Capability: Operation in Prometheus: Dashboards.
func TestHostRefused(t *testing.T) {
	f := &fixed{Value: model.Matrix{}}
	h := Handler(f, time.Minute, func() time.Time { return at }, hosts.New("dashboards.example:13000"))
	for host, want := range map[string]int{
		"evil.example": http.StatusForbidden, "evil.example:13000": http.StatusForbidden, "": http.StatusForbidden,
		"127.0.0.1:13000": http.StatusOK, "localhost": http.StatusOK, "dashboards.example": http.StatusOK,
	} {
		f.asked = nil
		r := request(http.MethodGet, "/")
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, host)
		require.Equal(t, want == http.StatusOK, len(f.asked) > 0, host)
	}
}

func TestHandler(t *testing.T) {
	h := Handler(&fixed{Value: model.Matrix{}}, time.Minute, func() time.Time { return at }, hosts.New("dashboards.example:13000"))
	for path, want := range map[string]int{"/": http.StatusOK, "/other": http.StatusNotFound} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(http.MethodGet, path))
		require.Equal(t, want, w.Code, path)
		if want == http.StatusOK {
			require.Equal(t, "default-src 'none'; style-src 'unsafe-inline'", w.Header().Get("Content-Security-Policy"))
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(http.MethodPost, "/"))
	require.Equal(t, http.StatusNotFound, w.Code)
}

// Nothing is drawn over a time without values, and no value that is not a number.
func TestGapsAreNotDrawn(t *testing.T) {
	s := Series{Values: append(samples(nil, 1, 2).Values, model.SamplePair{Timestamp: model.TimeFromUnix(at.Unix() + 9), Value: 3})}
	parts := s.parts(time.Second)
	require.Len(t, parts, 2)
	require.Len(t, parts[0], 2)
	require.EqualValues(t, 3, parts[1][0].Y)

	nan := Series{Values: samples(nil, 1, 0, 3).Values}
	nan.Values[1].Value = model.SampleValue(math.NaN())
	require.Len(t, nan.parts(time.Second), 2)
}

// A number is asked for now alone, so that it is not the last one of a series that has ended; a line over all the time.
func TestNumbersAreOfNow(t *testing.T) {
	f := &fixed{Value: model.Matrix{}}
	view := Last(time.Minute, at)
	number("n", Count, "now", "", 1, "about").Ask(t.Context(), f, view)
	lines("l", Count, "line", "", "about").Ask(t.Context(), f, view)
	require.Equal(t, view.To, f.spans["now"].Start)
	require.Equal(t, view.To, f.spans["now"].End)
	require.Equal(t, view.From, f.spans["line"].Start)
}

// A number is bad above its bound, or below it where that is the wrong side, and never without one.
func TestBadNumbers(t *testing.T) {
	of := func(p Panel, v float64) Drawn {
		return p.Ask(t.Context(), &fixed{Value: model.Matrix{samples(nil, 0, v)}}, Last(time.Minute, at))
	}
	high := number("n", Count, "up", "", 3, "about")
	low := below(high)
	require.True(t, of(high, 3).IsBad())
	require.False(t, of(high, 2).IsBad())
	require.True(t, of(low, 2).IsBad())
	require.False(t, of(low, 3).IsBad())
	require.False(t, of(number("n", Count, "up", "", 0, "about"), 9).IsBad())
	require.Equal(t, []Shown{{"", "2", false}}, of(high, 2).Numbers())
	require.Equal(t, []Shown{{"", "3", true}}, of(high, 3).Numbers())
	for _, d := range []Drawn{{Panel: high}, {Panel: low}, of(high, math.NaN()), of(low, math.NaN())} {
		require.Equal(t, []Shown{{"", "not known", true}}, d.Numbers(), "a number that nothing measured is bad")
		require.True(t, d.IsBad())
	}
	lost := high.Ask(t.Context(), &fixed{Value: model.Matrix{
		samples(model.Metric{"location": "north"}, 1), samples(model.Metric{"location": "south"}, math.NaN()),
	}}, Last(time.Minute, at))
	require.Len(t, lost.Numbers(), 2)
	require.True(t, lost.IsBad(), "of two locations one is not known")
}

// Capability: Deploy: systemd and a Debian package.
// Capability: Deploy: Time to stop.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		v    float64
		want string
	}{
		{Seconds, 0, "0 s"},
		{Seconds, 0.00025, "250 us"},
		{Seconds, 0.25, "250 ms"},
		{Seconds, 90, "90 s"},
		{Seconds, 600, "10 min"},
		{Seconds, 36000, "10 h"},
		{Seconds, 864000, "10 days"},
		{Bytes, 1500, "1.5 kB"},
		{BytesPerSecond, 2e9, "2 GB/s"},
		{Share, 0.5, "50 %"},
		{PerSecond, 1200, "1.2 k/s"},
		{Count, 7, "7"},
		{Count, 1e16, "1e+04T"},
	} {
		require.Equal(t, c.want, c.unit.format(c.v))
	}
}

// Two pages within one step show the same times, so that pictures do not tremble.
func TestLast(t *testing.T) {
	a, b := Last(time.Hour, at.Add(2*time.Second)), Last(time.Hour, at.Add(11*time.Second))
	require.Equal(t, a, b)
	require.Equal(t, 12*time.Second, a.Step)
	require.Equal(t, time.Hour, a.To.Sub(a.From))
	require.Equal(t, time.Second, Last(time.Minute, at).Step)
}

// Values that are all zero, or none, are drawn above an axis that begins at zero; below zero it ends above the highest value
// (table).
func TestAxis(t *testing.T) {
	label := regexp.MustCompile(`>(-?[0-9.]+)<`)
	for _, c := range []struct {
		values []float64
		want   []string
	}{
		{[]float64{0, 0}, []string{"0", "1"}},
		{[]float64{math.NaN(), math.Inf(1)}, []string{"0", "1"}},
		{[]float64{5, 7}, []string{"0", "3", "6"}},
		{[]float64{-5, -1}, []string{"-5", "-3", "-1"}},
	} {
		d := Drawn{Panel: lines("t", Count, "up", "", "about"), Series: []Series{{"a", samples(nil, c.values...).Values}}}
		picture, err := d.picture(Last(time.Minute, at.Add(time.Minute)))
		require.NoError(t, err)
		var got []string
		for _, m := range label.FindAllStringSubmatch(string(picture), -1) {
			got = append(got, m[1])
		}
		require.Equal(t, c.want, got, "%v", c.values)
	}
}
