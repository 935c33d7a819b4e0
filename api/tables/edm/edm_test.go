package edm

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/services/tables/entity"
)

// Output form of Double (5.1, 5.2), and every one reads back equal.
func TestDouble(t *testing.T) {
	for v, want := range map[float64]string{
		1: "1.0", 3.14: "3.14", 1e20: "1E+20", 1e15: "1E+15", 123456789012345: "123456789012345.0",
		0.0001: "0.0001", 0.00001: "1E-05", -2.5e-7: "-2.5E-07", 0: "0.0", math.Copysign(0, -1): "-0.0", 5e-324: "5E-324", math.MaxFloat64: "1.7976931348623157E+308",
	} {
		if got := string(AppendDouble(nil, v)); got != want {
			t.Errorf("%v prints %s, want %s", v, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		text := AppendDouble(nil, v)
		back, ok := ParseDouble(text)
		if !ok || math.Float64bits(back) != math.Float64bits(v) || !json.Valid(text) || !bytes.ContainsAny(text, ".E") {
			t.Fatalf("%v prints %s, reads %v", v, text, back)
		}
	})
}

// Calendar and texts agree with package time over the whole range.
func TestDateTimeTwin(t *testing.T) {
	const year1 = 62135596800
	rapid.Check(t, func(t *rapid.T) {
		ticks := rapid.Int64Range(0, entity.TicksMax).Draw(t, "ticks")
		want := time.Unix(ticks/ticksPerSecond-year1, ticks%ticksPerSecond*100).UTC().Format("2006-01-02T15:04:05.9999999Z")
		text := AppendDateTime(nil, ticks, ":")
		if string(text) != want {
			t.Fatalf("%d prints %s, want %s", ticks, text, want)
		}
		if back, ok := ParseDateTime(text); !ok || back != ticks {
			t.Fatalf("%s reads %d, %v", text, back, ok)
		}
	})
	if entity.TicksMin != daysOf(1601, 1, 1)*ticksPerDay || entity.TicksMax != daysOf(10000, 1, 1)*ticksPerDay-1 {
		t.Error("bounds of DateTime are off")
	}
	for text, want := range map[string]string{
		"2020-02-29": "2020-02-29T00:00:00Z", "2020-01-01T05:06": "2020-01-01T05:06:00Z",
		"2020-01-01T00:00-00:30": "2020-01-01T00:30:00Z", "2008-10-01T15:27:34.4838174Z": "2008-10-01T15:27:34.4838174Z",
	} {
		ticks, ok := ParseDateTime([]byte(text))
		if got := string(AppendDateTime(nil, ticks, ":")); !ok || got != want {
			t.Errorf("%s reads as %s, %v", text, got, ok)
		}
	}
}

// What is read as a value of a type prints to a text that is read as the same value.
func FuzzEDM(f *testing.F) {
	for _, s := range []string{
		"2020-01-01T03:02:00.1200000+02:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.99999999Z", "2020-02-30",
		"C9DA6455-213D-42C9-9A79-3E9149A57833", "1.5", "-0", "1e-400", "NaN", "-INF", "9223372036854775807", "00ff", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if ticks, ok := ParseDateTime(text); ok && ticks >= 0 {
			again, ok := ParseDateTime(AppendDateTime(nil, ticks, ":"))
			if year := text[:4]; string(year) != "9999" { // An offset may lead into a fifth digit.
				require.True(t, ok)
				require.Equal(t, ticks, again)
			}
		}
		if g, ok := ParseGUID(text); ok {
			out := AppendGUID(nil, g)
			require.True(t, bytes.EqualFold(text, out))
		}
		if v, ok := ParseDouble(text); ok && NotFinite(v) == "" {
			again, ok := ParseDouble(AppendDouble(nil, v))
			require.True(t, ok)
			require.Equal(t, math.Float64bits(v), math.Float64bits(again))
		}
		for _, bits := range []int{32, 64} {
			if v, ok := ParseInteger(text, bits); ok {
				again, ok := ParseInteger(strconv.AppendInt(nil, v, 10), bits)
				require.True(t, ok)
				require.Equal(t, v, again)
			}
		}
	})
}
