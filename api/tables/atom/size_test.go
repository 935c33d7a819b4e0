package atom

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/api/tables/odata"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// drawn is an entity with properties of any type and value, and names that XML and C# have.
func drawn(t *rapid.T, texts *rapid.Generator[string]) tables.Entity {
	b := entity.Build(nil)
	for i := range rapid.IntRange(0, 20).Draw(t, "properties") {
		name := rapid.StringMatching(`[a-zé_]{1,40}`).Draw(t, "name") + strconv.Itoa(i)
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
			err = b.AddGUID(name, [16]byte{15: rapid.Byte().Draw(t, "guid")})
		}
		require.NoError(t, err)
	}
	return tables.Entity{PK: texts.Draw(t, "pk"), RK: texts.Draw(t, "rk"), Timestamp: stamp, Props: b.Bytes()}
}

// What is reserved for a part of a document is never less than what it takes, whatever the entity
// and the selection, with the end of the feed; the closer bound is not above the other.
func TestSizesAreUpperBounds(t *testing.T) {
	worst := []rune{0, 1, '"', '&', '<', '>', '\r', '\n', 'a', 'é', 0xfffe, 0x1f600}
	texts := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom(worst), 0, 2000, -1))
	rapid.Check(t, func(t *rapid.T) {
		e := drawn(t, texts)
		set := &odata.Set{
			Base:    "http://" + rapid.String().Draw(t, "host") + "/",
			Account: rapid.StringMatching(`[a-z0-9]{3,24}`).Draw(t, "account"),
			Table:   rapid.StringMatching(`[A-Za-z]{3,63}`).Draw(t, "table"), Updated: updated,
		}
		if rapid.Bool().Draw(t, "selected") {
			var err error
			names := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z]{1,8}`)), 0, 20).Draw(t, "select")
			set.Select, err = odata.ParseSelect(strings.Join(names, ","))
			require.NoError(t, err)
		}
		single, err := Codec{}.AppendEntity(nil, set, odata.Alone, e)
		require.NoError(t, err)
		row, err := Codec{}.AppendEntity(nil, set, odata.Later, e)
		require.NoError(t, err)
		bound := Codec{}.EntityBound(set, e)
		require.LessOrEqual(t, len(single), bound)
		require.LessOrEqual(t, len(Codec{}.AppendFeedEnd(row, 1)), bound)
		require.LessOrEqual(t, bound, Codec{}.EntityMax(set, e))
		start := Codec{}.AppendFeedStart(nil, set)
		require.LessOrEqual(t, len(Codec{}.AppendFeedEnd(start, 0)), Codec{}.FeedStartMax(set))
		table := Codec{}.AppendTable(nil, set, odata.Alone, set.Table)
		require.LessOrEqual(t, len(Codec{}.AppendFeedEnd(table, 1)), Codec{}.TableMax(set, set.Table))
	})
}

// The bounds hold where a part is as long as it can be, and are not far above.
func TestBoundsOfTheLargest(t *testing.T) {
	text := func(s string) []byte {
		b := entity.Build(nil)
		require.NoError(t, b.AddString(strings.Repeat("n", 255), s))
		return b.Bytes()
	}
	guids, times := entity.Build(nil), entity.Build(nil)
	for i := range entity.PropertiesMax {
		require.NoError(t, guids.AddGUID("n"+strconv.Itoa(i), [16]byte{}))
		require.NoError(t, times.AddDateTime("n"+strconv.Itoa(i), entity.TicksMax))
	}
	for name, props := range map[string][]byte{
		"references": text(strings.Repeat("\x1f", entity.StringUnitsMax)), "not characters": text(strings.Repeat("\ufffe", entity.StringUnitsMax)),
		"Guids": guids.Bytes(), "times": times.Bytes(),
	} {
		key := strings.Repeat("&", 512)
		e := tables.Entity{PK: key, RK: key, Timestamp: stamp, Props: props}
		got, err := Codec{}.AppendEntity(nil, blogs(), odata.Alone, e)
		require.NoError(t, err)
		bound := Codec{}.EntityBound(blogs(), e)
		require.LessOrEqual(t, len(got), bound, name)
		require.Less(t, bound, len(got)*11/10, name)
		require.LessOrEqual(t, bound, Codec{}.EntityMax(blogs(), e), name)
	}
	list := Codec{}.AppendFeedEnd(Codec{}.AppendFeedStart(nil, blogs()), 0)
	require.Less(t, Codec{}.FeedStartMax(blogs()), 5*len(list))
}

func BenchmarkAppendEntity(b *testing.B) {
	e := tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: everyType(b)}
	set := blogs()
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = Codec{}.AppendEntity(dst[:0], set, odata.InFeed(1), e)
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkDecodeEntity(b *testing.B) {
	body, err := Codec{}.AppendEntity(nil, blogs(), odata.Alone, tables.Entity{PK: "p", RK: "r", Timestamp: stamp, Props: everyType(b)})
	require.NoError(b, err)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Codec{}).DecodeEntity(body, odata.Insert); err != nil {
			b.Fatal(err)
		}
	}
}
