package drill_test

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/drill"
)

// drawing is the picture of a page.
type drawing struct {
	Texts []text `xml:"text"`
	Rects []rect `xml:"rect"`
}

type text struct {
	Class string  `xml:"class,attr"`
	X     float64 `xml:"x,attr"`
	Y     float64 `xml:"y,attr"`
	Is    string  `xml:",chardata"`
}

type rect struct {
	Class string  `xml:"class,attr"`
	X     float64 `xml:"x,attr"`
	Y     float64 `xml:"y,attr"`
	W     float64 `xml:"width,attr"`
	H     float64 `xml:"height,attr"`
}

func draw(t *testing.T, r *drill.Report) (page string, d drawing) {
	t.Helper()
	var b strings.Builder
	require.NoError(t, drill.WritePage(&b, r))
	page = b.String()
	_, svg, ok := strings.Cut(page, "<svg ")
	require.True(t, ok)
	svg, _, ok = strings.Cut(svg, "</svg>")
	require.True(t, ok)
	require.NoError(t, xml.Unmarshal([]byte("<svg "+svg+"</svg>"), &d))
	return page, d
}

// seen is a report whose writes are the letters: d for a part of a second in which they succeeded, f in which they
// failed, m in which some did, and a dot in which none ended.
func seen(writes string) *drill.Report {
	r := &drill.Report{Account: "pictures", Checked: true, Verify: admin.VerifyEqual}
	r.Took = time.Duration(len(writes)) * time.Second
	for i, c := range writes {
		p := drill.Part{From: time.Duration(i) * time.Second, Done: map[drill.Kind]int{}, Failed: map[drill.Kind]int{}}
		if c == 'd' || c == 'm' {
			p.Done[drill.Writes] = 1
		}
		if c == 'f' || c == 'm' {
			p.Failed[drill.Writes] = 1
		}
		r.Line = append(r.Line, p)
	}
	return r
}

// A time in which no request ended is drawn as the request that ended next: a wait before a success does not look like
// a failure. Neighbours of one class are one bar, without a seam (table).
func TestGapsLookLikeWhatCameNext(t *testing.T) {
	for writes, want := range map[string][]string{
		"ddd":        {"done 0-3"},
		"dd..dd":     {"done 0-2", "waited 2-4", "done 4-6"},
		"d..fffm.dd": {"done 0-1", "hung 1-3", "failed 3-6", "mixed 6-7", "waited 7-8", "done 8-10"},
		"d.m..":      {"done 0-1", "waited 1-2", "mixed 2-3", "none 3-5"},
	} {
		r := seen(writes)
		_, d := draw(t, r)
		var got []string
		scale := 760 / r.Took.Seconds()
		for _, bar := range d.Rects {
			if bar.Y == d.Rects[0].Y { // The writes are the first line.
				got = append(got, fmt.Sprintf("%s %.0f-%.0f", bar.Class, (bar.X-400)/scale, (bar.X+bar.W-400)/scale))
			}
		}
		require.Equal(t, want, got, writes)
	}
}

// Each line of the picture has its label beside it, with the steps by name and number, and nothing is on top of
// another: neither lines, however short the steps are, nor the marks of the axis, however long the drill is.
func TestPictureIsLabelled(t *testing.T) {
	for _, took := range []time.Duration{
		time.Second, 20 * time.Second, 10 * time.Minute, 30 * time.Hour, 40 * 24 * time.Hour,
	} {
		r := seen("dfd")
		r.Took = took
		at := took / 2
		r.Moves = []drill.Span{
			{Name: "north to south without north", From: at, To: at + time.Millisecond},
			{Name: "start north", From: at + time.Millisecond, To: at + 2*time.Millisecond},
			{Name: strings.Repeat("long ", 30), From: at + 2*time.Millisecond, To: took},
		}
		r.Unplanned = &drill.Unplanned{From: at, RTO: &at, Followed: true, Compared: true}
		page, d := draw(t, r)
		lines, labels := map[float64]bool{}, map[string]float64{}
		var marks []text
		for _, b := range d.Rects {
			if b.Class != "shade" {
				lines[b.Y] = true
			}
		}
		for _, label := range d.Texts {
			if label.Class == "axis" {
				marks = append(marks, label)
				continue
			}
			require.Zero(t, label.X)
			require.Less(t, 6.6*float64(len([]rune(label.Is))), 400.0, "it ends before the bars: %q", label.Is)
			labels[label.Is] = label.Y
		}
		want := []string{
			"no service (RTO)", "acknowledged writes that are gone", "1  north to south without north", "2  start north",
		}
		for _, k := range drill.Kinds() {
			want = append(want, string(k))
		}
		for _, name := range want {
			require.Contains(t, labels, name)
		}
		require.Len(t, labels, len(want)+1)
		require.Contains(t, page, "3  "+strings.Repeat("long ", 30), "the whole name is in its title")
		for y := range lines {
			beside := 0
			for _, label := range labels {
				if label > y && label <= y+16 {
					beside++
				}
			}
			require.Equal(t, 1, beside, "one label beside each line")
		}
		slices.SortFunc(marks, func(a, b text) int { return cmp.Compare(a.X, b.X) })
		require.NotEmpty(t, marks)
		for i := range marks[1:] {
			require.Greater(t, marks[i+1].X-marks[i].X, float64(8*len(marks[i+1].Is))/2+float64(8*len(marks[i].Is))/2)
		}
	}
}

// The result is a word in its colour, and all times of the page are in one unit.
func TestPageHasTheResult(t *testing.T) {
	r := seen("ddd")
	r.Seen = []drill.Seen{{Kind: drill.Writes, Done: 3, P50: 4 * time.Millisecond, Stood: 12 * time.Second}}
	page, _ := draw(t, r)
	require.Contains(t, page, `<span class="result passed">passed</span>`)
	require.NotContains(t, page, `class="result failed"`)
	require.Contains(t, page, "0.004 s")
	require.Contains(t, page, "12.000 s")
	require.NotContains(t, page, " ms")
	r.Verify = admin.VerifyDifferent
	page, _ = draw(t, r)
	require.Contains(t, page, `<span class="result failed">failed</span>`)
	require.NotContains(t, page, `class="result passed"`)
}
