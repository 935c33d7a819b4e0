package edm

import (
	"math"
	"strconv"

	"antipode/api/wire"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

// Calendar arithmetic on 100 ns ticks since 0001-01-01, proleptic Gregorian, UTC.
const (
	ticksPerSecond = 10_000_000
	ticksPerMinute = 60 * ticksPerSecond
	ticksPerHour   = 60 * ticksPerMinute
	ticksPerDay    = 24 * ticksPerHour

	daysPer400Years = 146097
	// daysMarch0 is the number of days from 0000-03-01 to 0001-01-01. Years that
	// begin in March have their leap day at the end.
	daysMarch0 = 306
)

// daysOf returns the days from 0001-01-01 to the date.
func daysOf(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era, yearOfEra := year/400, year%400
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	return int64(era)*daysPer400Years + int64(yearOfEra*365+yearOfEra/4-yearOfEra/100+dayOfYear) - daysMarch0
}

// dateOf is the inverse of daysOf.
func dateOf(days int64) (year, month, day int) {
	z := days + daysMarch0
	era, d := int(z/daysPer400Years), int(z%daysPer400Years)
	yearOfEra := (d - d/1460 + d/36524 - d/146096) / 365
	dayOfYear := d - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153
	year, month, day = era*400+yearOfEra, m+3, dayOfYear-(153*m+2)/5+1
	if month > 12 {
		year++
		month -= 12
	}
	return year, month, day
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// cutNumber reads exactly n digits of s at i.
func cutNumber(s []byte, i, n int) (v int, ok bool) {
	if len(s) < i+n {
		return 0, false
	}
	for _, c := range s[i : i+n] {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	return v, true
}

// ParseDateTime reads ISO 8601: a date, then at will a time with up to 7 digits of
// fraction that count, then at will Z or an offset; no zone is UTC. The result is in
// ticks and may lie outside what a property can hold, even below zero by an offset.
func ParseDateTime(s []byte) (ticks int64, ok bool) {
	year, ok1 := cutNumber(s, 0, 4)
	month, ok2 := cutNumber(s, 5, 2)
	day, ok3 := cutNumber(s, 8, 2)
	if !ok1 || !ok2 || !ok3 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	if year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, false
	}
	ticks = daysOf(year, month, day) * ticksPerDay
	if s = s[10:]; len(s) > 0 && s[0] == 'T' {
		n, used, ok := parseClock(s[1:])
		if !ok {
			return 0, false
		}
		ticks, s = ticks+n, s[1+used:]
	}
	switch {
	case len(s) == 0, len(s) == 1 && s[0] == 'Z':
		return ticks, true
	case len(s) != 6 || s[0] != '+' && s[0] != '-' || s[3] != ':':
		return 0, false
	}
	hour, ok1 := cutNumber(s, 1, 2)
	minute, ok2 := cutNumber(s, 4, 2)
	if !ok1 || !ok2 || hour > 14 || minute > 59 {
		return 0, false
	}
	offset := int64(hour)*ticksPerHour + int64(minute)*ticksPerMinute
	if s[0] == '+' {
		offset = -offset
	}
	return ticks + offset, true
}

// parseClock reads hh:mm, hh:mm:ss or hh:mm:ss.fraction and returns its length.
func parseClock(s []byte) (ticks int64, used int, ok bool) {
	hour, ok1 := cutNumber(s, 0, 2)
	minute, ok2 := cutNumber(s, 3, 2)
	if !ok1 || !ok2 || s[2] != ':' || hour > 23 || minute > 59 {
		return 0, 0, false
	}
	ticks = int64(hour)*ticksPerHour + int64(minute)*ticksPerMinute
	if len(s) == 5 || s[5] != ':' {
		return ticks, 5, true
	}
	second, ok := cutNumber(s, 6, 2)
	if !ok || second > 59 {
		return 0, 0, false
	}
	ticks += int64(second) * ticksPerSecond
	if len(s) == 8 || s[8] != '.' {
		return ticks, 8, true
	}
	i := 9
	for scale := int64(ticksPerSecond / 10); i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		ticks += int64(s[i]-'0') * scale
		scale /= 10
	}
	return ticks, i, i > 9
}

// AppendDateTime appends ticks as 2020-01-01T01:02:00.12Z, without the fraction when
// it is zero. colon is what stands between the parts of the time.
func AppendDateTime(dst []byte, ticks int64, colon string) []byte {
	year, month, day := dateOf(ticks / ticksPerDay)
	rest := ticks % ticksPerDay
	dst = appendPadded(dst, year, 4)
	dst = appendPadded(append(dst, '-'), month, 2)
	dst = appendPadded(append(dst, '-'), day, 2)
	dst = appendPadded(append(dst, 'T'), int(rest/ticksPerHour), 2)
	dst = appendPadded(append(dst, colon...), int(rest/ticksPerMinute%60), 2)
	dst = appendPadded(append(dst, colon...), int(rest/ticksPerSecond%60), 2)
	if fraction := int(rest % ticksPerSecond); fraction != 0 {
		dst = appendPadded(append(dst, '.'), fraction, 7)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

func appendPadded(dst []byte, v, width int) []byte {
	var b [8]byte
	for i := width - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return append(dst, b[:width]...)
}

// DateTimeOutOfRange is the row for a DateTime that a property cannot hold; it prints
// the value the way the service does.
func DateTimeOutOfRange(name []byte, ticks int64) error {
	ticks = min(max(ticks, 0), entity.TicksMax)
	year, month, day := dateOf(ticks / ticksPerDay)
	rest := ticks % ticksPerDay
	b := append([]byte("The '"), name...)
	b = append(b, "' parameter of value '"...)
	b = appendPadded(b, month, 2)
	b = appendPadded(append(b, '/'), day, 2)
	b = appendPadded(append(b, '/'), year, 4)
	b = appendPadded(append(b, ' '), int(rest/ticksPerHour), 2)
	b = appendPadded(append(b, ':'), int(rest/ticksPerMinute%60), 2)
	b = appendPadded(append(b, ':'), int(rest/ticksPerSecond%60), 2)
	return storageerr.OutOfRangeInput.Saying(string(append(b, "' is out of range."...)))
}

// guidDash reports whether a dash stands at place i of the text of a Guid.
func guidDash(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

// ParseGUID reads 8-4-4-4-12 hexadecimal digits of either case.
func ParseGUID(s []byte) (g [16]byte, ok bool) {
	if len(s) != 36 {
		return g, false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if guidDash(i) {
			if s[i] != '-' {
				return g, false
			}
			continue
		}
		high, ok1 := wire.HexDigit(s[i])
		low, ok2 := wire.HexDigit(s[i+1])
		if !ok1 || !ok2 {
			return g, false
		}
		g[n] = high<<4 | low
		n++
		i++
	}
	return g, true
}

// AppendGUID appends a Guid with digits in lower case.
func AppendGUID(dst []byte, g [16]byte) []byte {
	const digits = "0123456789abcdef"
	for i, c := range g {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// AppendDouble appends a finite v in the shortest form that reads back equal and
// shows a point or an exponent: 1.0, 3.14, 1E+20.
func AppendDouble(dst []byte, v float64) []byte {
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e15) {
		return strconv.AppendFloat(dst, v, 'E', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// NotFinite returns the word for NaN and the infinities, and "" for a number.
func NotFinite(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return ""
}

// ParseDouble reads a decimal number, NaN or an infinity. Beyond the range fails: above
// the greatest, and what is not zero but below the least denormal.
func ParseDouble(s []byte) (float64, bool) {
	switch string(s) {
	case "NaN":
		return math.NaN(), true
	case "Infinity", "INF":
		return math.Inf(1), true
	case "-Infinity", "-INF":
		return math.Inf(-1), true
	}
	for _, c := range s {
		// ParseFloat also reads hexadecimal, words and underscores.
		if (c < '0' || c > '9') && c != '.' && c != '+' && c != '-' && c|0x20 != 'e' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(s), 64)
	return v, err == nil && (v != 0 || isZero(s))
}

// isZero reports whether the digits before the exponent of a number are all zero.
func isZero(s []byte) bool {
	for _, c := range s {
		switch {
		case c|0x20 == 'e':
			return true
		case c >= '1' && c <= '9':
			return false
		}
	}
	return true
}

// ParseInteger reads an optional minus and digits that fit in bits.
func ParseInteger(s []byte, bits int) (int64, bool) {
	if len(s) == 0 || s[0] == '+' {
		return 0, false
	}
	v, err := strconv.ParseInt(string(s), 10, bits)
	return v, err == nil
}
