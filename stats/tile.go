package stats

import (
	"cmp"
	"slices"

	"antipode/geo"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
)

// tiled reports whether the source ranges of a service, by the spans in their last full closed
// records, hold every key of it (R13). Without this a range that nothing is known of, as after a split,
// would be left out of the minimum. Spans may overlap: ranges say at different times what they
// hold.
func tiled(s geo.Service, known []cursor.Progress) bool {
	prefix := keys.AppendService(nil, s)
	at, end := string(prefix), string(keys.PrefixEnd(prefix))
	var spans []geo.Span
	for _, p := range known {
		if p.Descriptor > 0 && geo.Service(p.Source.Range) == s {
			spans = append(spans, p.Span)
		}
	}
	slices.SortFunc(spans, func(a, b geo.Span) int { return cmp.Compare(a.Start, b.Start) })
	for _, span := range spans {
		switch {
		case span.Start > at:
			return false
		case span.End == "" || span.End >= end:
			return true
		}
		at = max(at, span.End)
	}
	return false
}
