package json

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/api/tables/odata"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// What is reserved for a part of a document is never less than what it takes, whatever the
// entity, the level and the selection; the closer bound is not above the other.
func TestSizesAreUpperBounds(t *testing.T) {
	texts := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, '"', '\\', '\n', 'a', 'é', 0x1f600}), 0, 2000, -1))
	rapid.Check(t, func(t *rapid.T) {
		b := entity.Build(nil)
		for i := range rapid.IntRange(0, 20).Draw(t, "properties") {
			name := rapid.StringMatching(`[a-z_]{1,40}`).Draw(t, "name") + strings.Repeat("n", i)
			var err error
			switch rapid.IntRange(0, 7).Draw(t, "type") {
			case 0:
				err = b.AddString(name, texts.Draw(t, "text"))
			case 1:
				err = b.AddBinary(name, rapid.SliceOfN(rapid.Byte(), 0, 500).Draw(t, "bytes"))
			case 2:
				err = b.AddInt32(name, rapid.Int32().Draw(t, "int"))
			case 3:
				err = b.AddInt64(name, rapid.Int64().Draw(t, "long"))
			case 4:
				err = b.AddDouble(name, rapid.Float64().Draw(t, "double"))
			case 5:
				err = b.AddDateTime(name, rapid.Int64Range(entity.TicksMin, entity.TicksMax).Draw(t, "ticks"))
			case 6:
				err = b.AddBoolean(name, rapid.Bool().Draw(t, "bool"))
			default:
				err = b.AddGUID(name, [16]byte{})
			}
			require.NoError(t, err)
		}
		level := rapid.SampledFrom([]Level{NoMetadata, MinimalMetadata, FullMetadata}).Draw(t, "level")
		set := &odata.Set{
			Base:    "http://" + rapid.String().Draw(t, "host") + "/",
			Account: "acct", Table: rapid.StringMatching(`[A-Za-z]{3,63}`).Draw(t, "table"),
		}
		if rapid.Bool().Draw(t, "selected") {
			var err error
			set.Select, err = odata.ParseSelect(strings.Join(rapid.SliceOfN(rapid.String(), 0, 20).Draw(t, "select"), ","))
			require.NoError(t, err)
		}
		e := tables.Entity{
			PK: rapid.String().Draw(t, "pk"), RK: texts.Draw(t, "rk"), Timestamp: stamp, Props: b.Bytes(),
		}
		single, err := level.AppendEntity(nil, set, odata.Alone, e)
		require.NoError(t, err)
		row, err := level.AppendEntity(nil, set, odata.Later, e)
		require.NoError(t, err)
		bound := level.EntityBound(set, e)
		require.LessOrEqual(t, len(single), bound)
		require.LessOrEqual(t, len(row), bound)
		require.LessOrEqual(t, bound, level.EntityMax(set, e))
		require.LessOrEqual(t, len(level.AppendFeedStart(nil, set)), level.FeedStartMax(set))
		require.LessOrEqual(t, len(level.AppendTable(nil, set, odata.Later, set.Table)), level.TableMax(set, set.Table))
	})
}
