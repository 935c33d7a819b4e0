package dashboards

import (
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Sizes of panels in Grafana's units.
const (
	numberWidth, numberHeight = 6, 4
	linesWidth, linesHeight   = 8, 8
)

// source is the variable that chooses the Prometheus.
const source = "datasource"

// JSON returns the dashboard as Grafana imports and provisions it.
func (d Dashboard) JSON() ([]byte, error) {
	//nolint:staticcheck // Its successor is a form that no Grafana before 12 reads.
	b := dashboard.NewDashboardBuilder(d.Title).Uid(d.UID).Description(d.About).Tags([]string{"antipode"}).
		Timezone("utc").Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).Refresh("10s").Time("now-30m", "now").
		WithVariable(dashboard.NewDatasourceVariableBuilder(source).Label("Prometheus").Type("prometheus")).
		WithVariable(locations())
	id := uint32(0)
	for _, r := range d.Rows {
		id++
		b.WithRow(dashboard.NewRowBuilder(r.Title).Id(id))
		for _, p := range r.Panels {
			id++
			b.WithPanel(p.panel(id))
		}
	}
	built, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", d.UID, err)
	}
	out, err := json.MarshalIndent(built, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", d.UID, err)
	}
	return append(out, '\n'), nil
}

// fromSource is the Prometheus that was chosen.
func fromSource() common.DataSourceRef {
	kind, uid := "prometheus", "${"+source+"}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}

// locations is the variable of locations: all of them at first.
func locations() *dashboard.QueryVariableBuilder {
	query, all := "label_values(antipode_location_running, location)", "All"
	return dashboard.NewQueryVariableBuilder("location").Label("Location").Datasource(fromSource()).
		Query(dashboard.StringOrMap{String: &query}).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Multi(true).IncludeAll(true).AllValue(".+").
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{String: &all},
			Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}

// panel returns the panel for Grafana, with a number of its own in the dashboard.
func (p Panel) panel(id uint32) cog.Builder[dashboard.Panel] {
	if p.Kind == Number {
		return p.stat(id)
	}
	b := timeseries.NewPanelBuilder().Id(id).Title(p.Title).Description(p.About).Unit(string(p.Unit)).Datasource(fromSource()).
		Span(linesWidth).Height(linesHeight).Min(0).FillOpacity(8).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true))
	if p.Unit == Count {
		b.Decimals(0)
	}
	if p.Bad != 0 {
		b.Thresholds(p.thresholds()).ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	if p.Kind == Steps {
		b.LineInterpolation(common.LineInterpolationStepAfter)
	}
	for _, q := range p.Queries {
		b.WithTarget(q.target().Range())
	}
	return b
}

// stat returns a panel of a number for Grafana. It asks for now alone: the newest value of a series that has ended would
// be shown as if it were one of now. A value that nothing measured is red.
func (p Panel) stat(id uint32) cog.Builder[dashboard.Panel] {
	text, color := unknown, bad
	b := stat.NewPanelBuilder().Id(id).Title(p.Title).Description(p.About).Unit(string(p.Unit)).Datasource(fromSource()).
		Span(numberWidth).Height(numberHeight).Thresholds(p.thresholds()).GraphMode(common.BigValueGraphModeNone).
		ColorMode(common.BigValueColorModeBackground).TextMode(common.BigValueTextModeValueAndName).NoValue(unknown).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"last"})).
		Mappings([]dashboard.ValueMapping{{SpecialValueMap: &dashboard.SpecialValueMap{
			Type: dashboard.MappingTypeSpecialValue, Options: dashboard.DashboardSpecialValueMapOptions{
				Match: dashboard.SpecialValueMatchNullAndNan, Result: dashboard.ValueMappingResult{Text: &text, Color: &color},
			},
		}}})
	for _, q := range p.Queries {
		b.WithTarget(q.target().Instant())
	}
	return b
}

// The colours of values.
const good, bad = "green", "red"

// thresholds colours the values that are bad.
func (p Panel) thresholds() *dashboard.ThresholdsConfigBuilder {
	low, high := good, bad
	if p.BadBelow {
		low, high = high, low
	}
	steps := []dashboard.Threshold{{Color: low}}
	if p.Bad != 0 {
		steps = append(steps, dashboard.Threshold{Value: &p.Bad, Color: high})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// target returns a query of a panel for Grafana, with its own variables.
func (q Query) target() *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(q.With("$location", "$__rate_interval")).LegendFormat(q.Legend).
		Datasource(fromSource())
}
