package wire

import (
	"net/http"
	"strings"
	"time"

	"antipode/geo"
)

// Names of days and months in HTTP dates, three letters each.
const (
	dayNames   = "SunMonTueWedThuFriSat"
	monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"
)

// AppendHTTPTime appends t as RFC 1123 in GMT, whole seconds: the form of Date, Last-Modified and every time in
// listings. The year is 0 to 9999: the form has four digits. It is written by hand, without the layout that
// time.AppendFormat reads again for each of the thousands of dates of a page.
func AppendHTTPTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	weekday := 3 * int(t.Weekday())
	name := 3 * int(month-time.January)
	b = append(append(b, dayNames[weekday:weekday+3]...), ", "...)
	b = append(appendTwo(b, day), ' ')
	b = append(append(b, monthNames[name:name+3]...), ' ')
	b = append(appendTwo(appendTwo(b, year/100), year), ' ')
	b = append(appendTwo(b, hour), ':')
	b = append(appendTwo(b, minute), ':')
	return append(appendTwo(b, second), " GMT"...)
}

// FormatHTTPTime is AppendHTTPTime into a string.
func FormatHTTPTime(t time.Time) string {
	var b [len(http.TimeFormat)]byte
	return string(AppendHTTPTime(b[:0], t))
}

// ParseHTTPTime reads a date header in one of the three forms HTTP knows: RFC
// 1123, RFC 850 or asctime. The zone must be GMT: Go would read any other zone
// name as UTC and be hours off.
func ParseHTTPTime(s string) (t time.Time, ok bool) {
	if len(s) > 4 && s[3] == ' ' {
		t, err := time.Parse(time.ANSIC, s)
		return t.UTC(), err == nil
	}
	if !strings.HasSuffix(s, " GMT") {
		return time.Time{}, false
	}
	layout := time.RFC850
	if s[3] == ',' {
		layout = "Mon, 2 Jan 2006 15:04:05 GMT" // Java's formatter writes a day below 10 with one digit.
	}
	t, err := time.Parse(layout, s)
	return t.UTC(), err == nil
}

// AppendISO appends ts as the table service prints times: UTC with up to seven
// fraction digits, trailing zeros removed (protocol/table.md 4.7).
func AppendISO(b []byte, ts geo.Timestamp) []byte {
	b = appendSeconds(b, ts, ":")
	return append(appendFraction(b, ts, true), 'Z')
}

// FormatISO is AppendISO into a string.
func FormatISO(ts geo.Timestamp) string {
	var b [28]byte
	return string(AppendISO(b[:0], ts))
}

// AppendISOPadded is AppendISO with all seven digits of the fraction, zeros too.
func AppendISOPadded(b []byte, ts geo.Timestamp) []byte {
	return append(appendFraction(appendSeconds(b, ts, ":"), ts, false), 'Z')
}

// appendSeconds appends YYYY-MM-DDThh:mm:ss with the given text for the colons.
// It does by hand what time.AppendFormat does, in a third of the time: a page of
// a query prints two thousand of these.
func appendSeconds(b []byte, ts geo.Timestamp, colon string) []byte {
	t := ts.Time()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = append(appendTwo(appendTwo(b, year/100), year%100), '-')
	b = append(appendTwo(b, int(month)), '-')
	b = append(appendTwo(b, day), 'T')
	b = append(appendTwo(b, hour), colon...)
	b = append(appendTwo(b, minute), colon...)
	return appendTwo(b, second)
}

// appendFraction appends the seven fraction digits of a second with their point.
// Trimmed, trailing zeros go, and a fraction of zero leaves nothing.
func appendFraction(b []byte, ts geo.Timestamp, trim bool) []byte {
	rest := int(ts % geo.TicksPerSecond)
	if rest == 0 && trim {
		return b
	}
	b = append(b, '.')
	for unit := geo.TicksPerSecond / 10; unit > 0; unit /= 10 {
		if rest == 0 && trim {
			break
		}
		b = append(b, byte('0'+rest/unit))
		rest %= unit
	}
	return b
}

func appendTwo(b []byte, n int) []byte { return append(b, byte('0'+n/10%10), byte('0'+n%10)) }

// ParseISO reads what AppendISO writes: YYYY-MM-DDThh:mm:ss, perhaps a point and
// one to seven digits, Z. Times before 1970 are no timestamp.
func ParseISO(s string) (ts geo.Timestamp, ok bool) {
	const layout = "2006-01-02T15:04:05"
	if len(s) <= len(layout) || s[len(s)-1] != 'Z' ||
		!IsDate(s[:10]) || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	year, _ := digits(s[:4])
	month, _ := digits(s[5:7])
	day, _ := digits(s[8:10])
	hour, ok1 := digits(s[11:13])
	minute, ok2 := digits(s[14:16])
	second, ok3 := digits(s[17:19])
	if !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	seconds := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).Unix()
	if seconds < 0 {
		return 0, false
	}
	ts = geo.Timestamp(seconds) * geo.TicksPerSecond
	fraction := s[len(layout) : len(s)-1]
	if fraction == "" {
		return ts, true
	}
	n, ok := digits(fraction[1:])
	if !ok || fraction[0] != '.' || len(fraction) > 1+7 {
		return 0, false
	}
	for range 8 - len(fraction) {
		n *= 10
	}
	return ts + geo.Timestamp(n), true
}

// ParseShortISO is ParseISO, and also reads a day, and a time without its seconds, as policies and signatures have them
// (protocol/auth.md 16).
func ParseShortISO(s string) (ts geo.Timestamp, ok bool) {
	const day, minute, second = len("2006-01-02"), len("2006-01-02T15:04"), len("2006-01-02T15:04:05")
	switch bare, zoned := strings.CutSuffix(s, "Z"); {
	case len(s) == day:
		s += "T00:00:00Z"
	case zoned && len(bare) == minute:
		s = bare + ":00Z"
	case !zoned || len(bare) < second:
		return 0, false
	}
	return ParseISO(s)
}

// IsDate reports whether s is a date of the calendar in the form YYYY-MM-DD.
func IsDate(s string) bool {
	if len(s) != len("2006-01-02") || s[4] != '-' || s[7] != '-' {
		return false
	}
	year, ok1 := digits(s[:4])
	month, ok2 := digits(s[5:7])
	day, ok3 := digits(s[8:])
	return ok1 && ok2 && ok3 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
}

// digits reads s as a decimal number of ASCII digits and nothing else.
func digits(s string) (n int, ok bool) {
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return n, len(s) > 0
}

// daysIn returns the length of a month of the Gregorian calendar; month is 1 to 12.
func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}
