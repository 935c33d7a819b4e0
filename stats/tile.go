package stats

import (
	"cmp"
	"slices"

	"antipode/geo"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
)

// tiled reports whether the source ranges, by the spans in their last full closed records, hold every key
// with a prefix (R13). Without this a range that nothing is known of, as after a split,
// would be left out of the minimum. Spans may overlap: ranges say at different times what they
// hold. Those of other keys do no harm.
func tiled(prefix []byte, known []cursor.Progress) bool {
	at, end := string(prefix), string(keys.PrefixEnd(prefix))
	var spans []geo.Span
	for _, p := range known {
		if p.Descriptor > 0 {
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
